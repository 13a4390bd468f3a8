// Pictures, voice messages and files inside a bubble.

import { fileUrl } from "./api.js";
import { byId, el, icon } from "./dom.js";
import { say } from "./words.js";

const PLAY = "M8 5.5v13l11-6.5z";
const PAUSE = "M8 5v14M16 5v14";
const PAPER = "M7 3.5h7l4.5 4.5v11A1.5 1.5 0 0117 20.5H7A1.5 1.5 0 015.5 19V5A1.5 1.5 0 017 3.5zM13.5 3.5V8.5h5";

export function media(message, caption) {
  if (message.photo) return photo(message.photo.at(-1), caption);
  if (message.video) return video(message.video, say("Video"));
  if (message.voice) return sound(message.voice, say("Voice message"));
  if (message.audio) return sound(message.audio, message.audio.title || message.audio.file_name || say("Audio"));
  if (message.document) return file(message.document);
  return null;
}

function photo(size, caption) {
  const image = el("img", {
    src: fileUrl(size),
    alt: caption || say("Photo"),
    width: size.width,
    height: size.height,
    loading: "lazy",
  });
  image.style.width = `${Math.min(size.width, (420 * size.width) / size.height, 420)}px`;
  const open = () => {
    byId("viewed").src = image.src;
    byId("viewed").alt = image.alt;
    byId("viewer").showModal();
  };
  return el("button", { type: "button", class: "photo", "aria-label": say("Open picture: {name}", { name: image.alt }), onclick: open }, image);
}

function video(shown, label) {
  return el("video", { class: "video", controls: true, preload: "metadata", src: fileUrl(shown), "aria-label": label });
}

function file(shown) {
  const name = shown.file_name || say("File");
  const words = el("span", { class: "file-words" }, el("span", { class: "file-name" }, name), el("span", { class: "file-size" }, size(shown.file_size)));
  return el("a", { class: "file", href: fileUrl(shown), download: name }, el("span", { class: "disc" }, icon(PAPER)), words);
}

function sound(shown, label) {
  const audio = el("audio", { src: fileUrl(shown), preload: "none" });
  const button = el("button", { type: "button", class: "disc", "aria-label": say("Play: {name}", { name: label }) }, icon(PLAY));
  const progress = el("input", { type: "range", min: 0, max: 100, step: 0.1, value: 0, "aria-label": say("Position") });
  const time = el("span", { class: "file-size" }, clock(shown.duration));
  const length = () => (Number.isFinite(audio.duration) ? audio.duration : shown.duration) || 1;
  button.addEventListener("click", () => (audio.paused ? audio.play().catch(() => { time.textContent = say("This browser cannot play it"); }) : audio.pause()));
  const face = () => {
    button.replaceChildren(icon(audio.paused ? PLAY : PAUSE));
    button.setAttribute("aria-label", audio.paused ? say("Play: {name}", { name: label }) : say("Pause: {name}", { name: label }));
  };
  audio.addEventListener("play", face);
  audio.addEventListener("pause", face);
  audio.addEventListener("timeupdate", () => {
    progress.value = (100 * audio.currentTime) / length();
    time.textContent = clock(audio.currentTime || shown.duration);
  });
  progress.addEventListener("input", () => { audio.currentTime = (progress.value / 100) * length(); });
  return el("div", { class: "sound", role: "group", "aria-label": label }, button, el("div", { class: "track" }, progress, time), audio);
}

export function clock(seconds) {
  const whole = Math.round(seconds || 0);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}

export function size(bytes) {
  if (!bytes) return "0 B";
  const step = Math.min(3, Math.floor(Math.log2(bytes) / 10));
  const value = bytes / 1024 ** step;
  return `${value.toFixed(step && value < 10 ? 1 : 0)} ${["B", "KB", "MB", "GB"][step]}`;
}
