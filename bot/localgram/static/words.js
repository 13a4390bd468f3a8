// The page's words in the browser's language. English stands where a text is used, and is its key here.

const LANGUAGES = ["de", "es", "fr", "ru", "zh"];
const WORDS = {
  "Chat": ["Chat", "Chat", "Discussion", "Чат", "聊天"],
  "Demo": ["Demo", "Demo", "Démo", "Демо", "演示"],
  "· nothing leaves this machine": ["· nichts verlässt diesen Rechner", "· nada sale de esta máquina", "· rien ne quitte cette machine", "· ничто не покидает этот компьютер", "· 一切都不会离开这台机器"],
  "The demo does not answer. Is make demo still running in its terminal? Started anew, it prints a new address.": ["Die Demo antwortet nicht. Läuft make demo noch in seinem Terminal? Neu gestartet nennt es eine neue Adresse.", "La demo no responde. ¿Sigue make demo en marcha en su terminal? Al iniciarlo de nuevo muestra otra dirección.", "La démo ne répond pas. make demo tourne-t-il encore dans son terminal ? Relancé, il affiche une nouvelle adresse.", "Демо не отвечает. Работает ли ещё make demo в своём терминале? После нового запуска он покажет новый адрес.", "演示没有响应。make demo 还在终端里运行吗？重新启动后会显示新的地址。"],
  "The demo does not answer: nothing was sent. Is make demo still running in its terminal?": ["Die Demo antwortet nicht: Es wurde nichts gesendet. Läuft make demo noch in seinem Terminal?", "La demo no responde: no se ha enviado nada. ¿Sigue make demo en marcha en su terminal?", "La démo ne répond pas : rien n’a été envoyé. make demo tourne-t-il encore dans son terminal ?", "Демо не отвечает: ничего не отправлено. Работает ли ещё make demo в своём терминале?", "演示没有响应：什么也没有发送。make demo 还在终端里运行吗？"],
  "Conversation": ["Unterhaltung", "Conversación", "Conversation", "Разговор", "对话"],
  "Commands": ["Befehle", "Comandos", "Commandes", "Команды", "命令"],
  "Message": ["Nachricht", "Mensaje", "Message", "Сообщение", "消息"],
  "Attach files": ["Dateien anhängen", "Adjuntar archivos", "Joindre des fichiers", "Прикрепить файлы", "添加文件"],
  "Send": ["Senden", "Enviar", "Envoyer", "Отправить", "发送"],
  "Files to send": ["Zu sendende Dateien", "Archivos para enviar", "Fichiers à envoyer", "Файлы для отправки", "要发送的文件"],
  "Copy the code": ["Code kopieren", "Copiar el código", "Copier le code", "Скопировать код", "复制代码"],
  "Copied": ["Kopiert", "Copiado", "Copié", "Скопировано", "已复制"],
  "The browser did not allow copying": ["Der Browser hat das Kopieren nicht erlaubt", "El navegador no permitió copiar", "Le navigateur n’a pas permis la copie", "Браузер не разрешил копирование", "浏览器不允许复制"],
  "edited": ["bearbeitet", "editado", "modifié", "изменено", "已编辑"],
  "bot": ["Bot", "bot", "bot", "бот", "机器人"],
  "You": ["Du", "Tú", "Vous", "Вы", "你"],
  "Start": ["Starten", "Iniciar", "Démarrer", "Начать", "开始"],
  "Stop": ["Stopp", "Detener", "Arrêter", "Стоп", "停止"],
  "Thinking…": ["Denkt nach …", "Pensando…", "Réflexion…", "Думает…", "思考中…"],
  "Being written": ["Wird geschrieben", "Se está escribiendo", "En cours d’écriture", "Пишется", "正在编写"],
  "typing": ["tippt", "escribiendo", "écrit", "печатает", "正在输入"],
  "working": ["arbeitet", "trabajando", "travaille", "работает", "正在处理"],
  "Photo": ["Foto", "Foto", "Photo", "Фото", "照片"],
  "Voice message": ["Sprachnachricht", "Mensaje de voz", "Message vocal", "Голосовое сообщение", "语音消息"],
  "Open picture: {name}": ["Bild öffnen: {name}", "Abrir la imagen: {name}", "Ouvrir l’image : {name}", "Открыть изображение: {name}", "打开图片：{name}"],
  "Code, {language}": ["Code, {language}", "Código, {language}", "Code, {language}", "Код, {language}", "代码，{language}"],
  "Preformatted text": ["Text in fester Form", "Texto con formato fijo", "Texte préformaté", "Текст с разметкой", "预格式文本"],
  "Hidden text, press to show": ["Verborgener Text, zum Zeigen drücken", "Texto oculto, pulsa para mostrarlo", "Texte masqué, appuyez pour l’afficher", "Скрытый текст, нажмите, чтобы показать", "隐藏文本，点按显示"],
  "Reaction {emoji}": ["Reaktion {emoji}", "Reacción {emoji}", "Réaction {emoji}", "Реакция {emoji}", "回应 {emoji}"],
  "Choices": ["Auswahl", "Opciones", "Choix", "Варианты", "选项"],
};

const codes = (navigator.languages ?? [navigator.language]).map((tag) => tag.split("-")[0].toLowerCase());
export const LANGUAGE = codes.find((code) => code === "en" || LANGUAGES.includes(code)) ?? "en";

// `values` are filled in for the names in braces.
export function say(english, values = {}) {
  const text = WORDS[english]?.[LANGUAGES.indexOf(LANGUAGE)] ?? english;
  return text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

// What stands in the page itself.
export function translatePage() {
  document.documentElement.lang = LANGUAGE;
  document.title = say(document.title);
  for (const name of ["aria-label", "placeholder"]) {
    for (const node of document.querySelectorAll(`[${name}]`)) node.setAttribute(name, say(node.getAttribute(name)));
  }
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode.data.trim();
    if (text) texts.currentNode.data = texts.currentNode.data.replace(text, say(text));
  }
}
