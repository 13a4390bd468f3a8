"""Fixed answers while the toy model serves: what the program knows is not left to a model that does not.

They are about the program itself, files, pictures, recordings, long pastes and other languages than
English; and what a file says is read by the program.
"""

import json
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from shlex import quote

from agent.approvals import DENIED
from agent.language import translated
from agent.messages import Assistant, Message, ToolCall, ToolResult, User
from agent.model import Completion, Model, Piece, Request, TextPiece, ToolCallPiece
from agent.prompt import attached_files, context_and_words
from agent.store.documents import PACKED, readable
from agent.toy import texts
from agent.toy.languages import answer_in, of_clock, of_other_language, of_timer
from agent.toy.wishes import (
    Carried,
    by_bash,
    carried,
    failed,
    in_columns,
    invented,
    last_words,
    misquoted,
    notes_in,
    of_sum,
    result_of,
)
from agent.turn.fixed_answers import FixedAnswers

TOY = "pocket"  # its profile
PASTE = 1500  # characters
LONGEST_ANSWER = 500  # tokens; more goes round in circles, for a minute where the machine is busy
RUNS = {"py": "python3", "sh": "bash", "js": "node", "pl": "perl"}  # by the end of a file's name
# Tools whose results are told as they are.
LISTS = ("grep", "list_files", "git_status", "git_diff", "git_log")
SHORT = 90  # characters of a question about the program itself
# Patterns are compiled at their first use: a start does not wait for them.
SAYS = (
    r"^(?:so |and |hi,? |please )*what(?:'s|’s| is| does| do)?\b.{0,30}(?:\bsays?\b|\bin (?:it|this|that|there|here|the)\b|\babout\b|\bcontain)"
    r"|^(?:please |can you |could you )*(?:read|open|show)(?: me)? (?:it|this|that|the (?:file|document|pdf|text))\b|^what is (?:it|this|that)\b"
)
LOOK = r"\b(?:what|who|where|which|how many|see|look|show|describe|read|says?|colou?rs?)\b"
QUESTIONS = (
    (r"\bgguf\b|\b(?:ollama|lm studio|llama\.cpp|llama-server|vllm)\b|^(?:what|which) (?:language )?models? (?!are you|is (?:this|it|that|running)|do you)|\b(?:real|better|bigger|proper|other|another|different|smarter) model\b|^why are you so (?:dumb|stupid|bad|silly|weak)", texts.REAL_MODEL),
    (r"\b(?:use|get|download|install|switch|change|load)\b.{0,20}\bmodels?\b", texts.REAL_MODEL),
    (r"what (?:can|could) (?:you|i)\b.{0,12}\b(?:do|ask|help)|what are you able|^help(?: me)?$|^what do you do", texts.ABILITIES),
    (r"\b(?:commands|start(?:ing)? (?:over|again|fresh|anew)|new (?:conversation|chat))\b|^how (?:do|can) (?:i|you) (?:(?:make|get) you )?(?:stop|cancel|abort|interrupt|reset|restart|undo|delete|forget|remove|change|switch|set|clear)\b(?!.*\b(?:files?|folders?)\b)", texts.COMMANDS),
    (r"^(?!.+ (?:is|are) (?:done|bought|finished)$)(?:please |can you |could you )*(?:(?:debug|refactor|optimi[sz]e|translate|solve|prove|rewrite|rephrase|proofread|draw|paint|sing|play|book|buy|pay|phone|text|email|convert|pretend|imagine|recommend|suggest|advise|install|encode|decode|undo|organi[sz]e|draft|compose|invent|brainstorm|think of|come up with)\b|call (?!me\b)|plan (?!.*\bremind)|summari[sz]e (?!.*\b(?:repo\w*|project|this|it)\b)|explain (?!.*\b(?:repo|project))|fix (?:the|a|my|this) (?:bug|code|error|script|program)|write (?:me )?(?:unit |some )?(?:tests?|an? (?:[\w-]+ ){0,2}(?:poem|story|song|haiku|limerick|essay|speech|e-?mail|letter|joke|program|function|script|regex)\b(?!.*\w\.\w)))|^if i\b|\btick (?:it|that) off$|^what does (?:this|that)\b.{0,30}\b(?:do|mean)\b.*[:`]", texts.UNSURE),
    (r"^(?:what|which) (?:reminders|jobs|timers|alarms)\b|^(?:please )?(?:cancel|delete|remove|stop|show|list|change) (?:my|the|all|this|that|our)(?: my| the)? (?:last )?(?:reminders?|jobs?|timers?|alarms?)(?: (?:about|for|to|of|at) .+)?$|^(?:please )?forget (?!to\b|about it)|^do you (?:remember|keep|store|save|learn)\b.*\b(?:i|we|us|me|say|tell|talked|chats?|messages)\b(?!.*\bmy\b)", texts.COMMANDS),
    (r"\b(?:send|share|leak|upload|collect|sell|store|keep|get)\b.{0,12}\bmy (?:data|messages|chats?|information|words)\b|\bwho (?:can|else)\b.{0,12}\b(?:read|see)\b|^(?:is|are) (?:this|it|you|that|my (?:data|chat|messages?))(?: thing| bot| app| chat)? (?:safe|secure|private|spying)(?! (?:to (?!use|talk|write|tell|send|share|trust)|for|if|when))|^(?:can|may) (?!you\b|i\b).{1,40} (?:use|talk to|write to|chat with) (?:you|it|this)\b|\b(?:to|in) the cloud\b|\b(?:leaves?|leaving|stays? on)\b.{0,20}\b(?:computer|machine|device|house|home|laptop|pc)\b|\b(?:privacy|spy(?:ing)?)\b|^where (?:do|are) you (?:run|running|live|hosted)|^can i trust you", texts.PRIVACY),
    (r"https?://|\bwww\.|^(?:what|how)(?:'s|s| is| will)?\b.{0,30}\b(?:news|weather|forecast|ip(?: address)?)\b|\b(?:download|open|visit|ping|go to) \S+\.(?:com|org|net)\b|\bprocess(?:es)?\b|\b(?:eating|hogging|using) (?:up )?(?:all )?(?:my|the) (?:memory|ram|cpu)\b|^can you (?:read|see|access|open|look at) (?:all )?my (?:files|computer|disk|documents|data)|^what(?:'s| is) (?:the|a|your) sandbox|^can you (?:go|get|look|search|browse|connect|surf)\b.*\b(?:internet|web|online)|^(?:do you have|are you) (?:internet|online|connected)|^how (?:do|can) i (?:send|give|attach|upload|share|show)(?: you)?\b.*\b(?:files?|documents?|you)\b", texts.REACH),
    (r"^(?:can|do|could) you (?:speak|talk|hear|listen|see)(?: (?:to )?me)?(?: (?:aloud|out loud))?$|^(?:can|do|could) you (?:see|view|look at|recogni[sz]e|hear|listen|speak|talk|understand|read)\b.*\b(?:pictures?|photos?|images?|voice|audio|speech|german|french|spanish|russian|chinese|italian|polish|dutch|portuguese|language|languages|deutsch|other)\b", texts.SENSES),
    (r"^how (?:do|can) i\b.*\b(?:telegram|matrix|my phone)$|^how (?:do|can) i (?:install|set ?up|connect|deploy) (?:you|this|it|voltaire)|^(?:does|do) (?:it|this|you|that|voltaire) cost\b|^(?:do|must|should) i (?:have to )?pay\b|^(?:does|do) (?:it|this|you|i|voltaire) needs? (?:a )?(?:gpu|graphics|card|internet)|^(?:is|are) (?:it|this|you|voltaire) (?:free|open source)|^how much (?:do(?:es)?|is) (?:it|this|you|voltaire) cost|^what (?:does|do) (?:it|this|you) cost", texts.SETUP),
    (r"^how (?:do|can|would) i\b.*\brepos?(?:itor(?:y|ies))?$|^how (?:do|can|would) i\b.*\brepos?(?:itor(?:y|ies))? (?:of mine|here|to you)$", texts.REPOSITORIES),
    (r"^how(?:'s| is| are) (?:you|it going|things|life)(?: (?:doing|today|now))?$|^how do you do$|^what's up$", texts.FINE),
    (r"^(?:(?:and |so )?who|what)(?: are you|'s voltaire| is voltaire)|^are you (?:an? |chat)|your name|^(?:which|what)(?:'s| is)?(?: the| your)? (?:language )?model(?: are you(?: running(?: on)?| using| based on)?| is (?:this|it|that|running)| do you (?:use|run))?$|^who (?:made|built|wrote|created) you", texts.SELF),
)  # fmt: skip
# What the model was taught to say of itself, and what a person reads in its place, in their own language.
TAUGHT = {each: each for each in (texts.HELLO, texts.FINE, texts.WELCOME, texts.GOODBYE)} | {
    "I am only a demonstration model, and this is beyond me. For real work, give me a real model.": texts.BEYOND,
    "I have no tool for that here.": texts.BEYOND,
}  # fmt: skip
# What the model says to much that it does not know, and what a person says who asks for it.
CANNED = (
    ("I am Voltaire", r"\b(?:who are|you are|your|yourself|introduce)\b|\bare you (?:an?|the|chat\w*|voltaire|gpt|human|real|ai|there)\b|^(?:hi|hello|hey)\b"),
    ("I can look at this machine", r"\b(?:can you|could you|you (?:can|do)|able|help|abilities|commands|tools|features)\b"),
    (texts.FINE, r"\b(?:how|fine|up)\b|\byou (?:ok|okay|well)\b"),
    (texts.WELCOME, r"\b(?:thanks?|thank|thx|ty|cheers|merci|danke|ok|okay|good|great|nice|perfect|cool|well done|love|awesome|super)\b"),
    (texts.GOODBYE, r"^(?:[\w']+[,! ]+){0,3}(?:bye|goodbye|later|night|tomorrow|see you|farewell|ciao|cu|go|leaving|off)\W*(?:\w+\W*)?$"),
    ("Hello!", r"^(?:\w+[,! ]+)?(?:hi|hello|hey|yo|good|morning|evening|greetings|hallo|howdy|welcome|sup|test|ping)\b"),
)  # fmt: skip


def file_asked_about(message: str) -> str:
    """The path of the file that came with a message that asks what the file says; "" for any other message."""
    head, words = context_and_words(message)
    files = attached_files(head)
    if len(files) != 1 or not re.search(SAYS, words.lower()) or len(words) > SHORT:
        return ""
    path, what = files[0]
    return "" if re.search(r"photo|image/|voice|audio|video", what.lower()) else path


def command_on_file(message: str) -> str:
    """The command for a message that asks to count, begin or run the file that came with it; "" for any other."""
    head, words = context_and_words(message)
    files = attached_files(head)
    asked = words.lower().strip("?!. ")
    if (
        len(files) != 1
        or len(asked) > SHORT
        or re.search(r"photo|image/|voice|audio|video", files[0][1])
    ):
        return ""
    if found := re.search(r"\bhow many (lines|rows|words)\b", asked):
        return f"wc {'-w' if found[1] == 'words' else '-l'} {quote(files[0][0])}"
    runs = RUNS.get(files[0][0].rpartition(".")[2].lower())
    if runs and re.match(r"^(?:please |can you |could you )*(?:run|execute|start) (?:it|this|that|the (?:file|script|program))(?: please)?$", asked):  # fmt: skip
        return f"{runs} {quote(files[0][0])}"
    if re.search(
        r"\b(?:first|top|beginning|start)\b.{0,12}\b(?:rows|lines|of (?:it|this|the file))\b", asked
    ):
        return f"head -n 5 {quote(files[0][0])}"
    return ""


def reading_call(path: str) -> ToolCall:
    """The call that reads a file, as a document where it is one."""
    if readable(path, PACKED):
        return ToolCall("", "bash", json.dumps({"command": f"docs show {quote(path)}"}))
    return ToolCall("", "read_file", json.dumps({"path": path}))


def fixed_answer(message: str) -> str:
    """The answer to a person's message; "" where the toy is to try."""
    head, words = context_and_words(message)
    path, what = next(iter(attached_files(head)), ("", ""))
    what = what.lower()
    picture = re.search(r"photo|image/", what)
    if path and (not words or (picture and re.search(LOOK, words.lower()))):
        form = texts.FILE
        if picture:
            form = texts.PICTURE
        elif "voice" in what or "audio" in what or "video" in what:
            form = texts.VOICE
        return translated(form).format(path=path)
    if len(words) > PASTE:
        return translated(texts.PASTE).format(count=len(words))
    asked = " ".join(words.lower().replace("’", "'").strip("?!. ").split())
    if len(asked) <= SHORT:
        for pattern, answer in QUESTIONS:
            if re.search(pattern, asked):
                return translated(answer)
    return answer_in(words)


class ToyAnswers(FixedAnswers):
    """The toy behind the program, which carries out the wishes that it knows, and stops calls and figures
    that the model has made up."""

    def __init__(self, model: Model) -> None:
        super().__init__(model, fixed_answer)

    def completion(self, request: Request) -> Completion | None:
        messages, last = request.messages, request.messages[-1]
        if not request.tools:
            return None
        if isinstance(last, User) and (wish := wish_of(messages)):
            calls = (wish.call,) if wish.call else ()
            return Completion(wish.answer, calls, "", "tool_calls" if calls else "stop")
        if isinstance(last, ToolResult) and len(messages) > 2 and isinstance(messages[-3], User):
            wish, made = wish_of(messages[:-2]), messages[-2]
            if wish and wish.call and isinstance(made, Assistant) and same(wish.call, made.calls):
                return Completion(wish.tells(last.text), (), "", "stop")
        return super().completion(request)

    async def stream(self, request: Request) -> AsyncGenerator[Piece]:
        """The model's text comes as one piece, after it was checked: it is short and quickly generated."""
        known = self.completion(request) is not None
        if request.tools:
            most = min(request.max_tokens or LONGEST_ANSWER, LONGEST_ANSWER)
            request = replace(request, max_tokens=most)
        async with aclosing(super().stream(request)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Completion):
                    piece = piece if known else checked(piece, request)
                    if piece.text:
                        yield TextPiece(piece.text)
                if not isinstance(piece, TextPiece | ToolCallPiece):
                    yield piece


def wish_of(messages: Sequence[Message]) -> Carried | None:
    """What the program does about the last message, a person's; None where it has a fixed answer or does not know."""
    last = messages[-1]
    assert isinstance(last, User)
    if command := command_on_file(last.text):
        return by_bash(command)
    if path := file_asked_about(last.text):
        says = partial(translated(texts.SAYS).format, path=path)
        return Carried(call=reading_call(path), tells=lambda text: says(text=result_of(text)))
    head, words = context_and_words(last.text)
    now = re.search(r"(?m)^now: \w+ (\d{4}-\d\d-\d\d \d\d:\d\d) ", head)
    if now and len(words) <= SHORT and "\nfile: " not in f"\n{head}":
        at = datetime.fromisoformat(now[1]).replace(tzinfo=UTC)
        known = of_sum(words) or of_other_language(words, at, notes_in(messages))
        if wish := known or of_timer(words, at) or of_clock(words):
            return wish
    return None if fixed_answer(last.text) else carried(messages)


def same(call: ToolCall, made: Sequence[ToolCall]) -> bool:
    return [(each.name, each.arguments) for each in made] == [(call.name, call.arguments)]


def same_again(calls: Sequence[ToolCall], messages: Sequence[Message]) -> bool:
    """Whether the model repeats the call of which it has just got the result."""
    made = messages[-2] if len(messages) > 1 else None
    return len(calls) == 1 and isinstance(made, Assistant) and same(calls[0], made.calls)


def checked(completion: Completion, request: Request) -> Completion:
    """The completion; replaced where its calls or figures are made up."""
    if not request.tools:
        return completion
    messages = request.messages
    endless = completion.finish_reason == "length"
    last = messages[-1]
    instead = partial(replace, completion, calls=(), finish_reason="stop")
    if isinstance(last, ToolResult) and last.text == DENIED:  # which is said to the model
        return instead(text=translated(texts.DENIED))
    astray = endless or any(invented(call, messages) for call in completion.calls)
    if isinstance(last, ToolResult) and not failed(last) and (astray or same_again(completion.calls, messages)):  # fmt: skip
        return instead(text=in_columns(last.text))
    if astray:
        return instead(text=translated(texts.UNSURE))
    asked = context_and_words(last_words(messages))[1]
    for said, asks in CANNED:
        if completion.text.startswith(said) and not re.search(asks, asked.lower()):
            return replace(completion, text=translated(texts.UNSURE))
    for said, told in TAUGHT.items():
        if completion.text.startswith(said):  # and then perhaps on, about nothing
            return replace(completion, text=translated(told))
    if completion.calls or not isinstance(last, ToolResult):
        return completion
    if last.name in LISTS and not failed(last):
        return replace(completion, text=in_columns(last.text))
    if last.name == "recall" and asked and all(asked in line for line in last.text.splitlines()):
        return replace(completion, text=translated(texts.NO_NOTES))
    if failed(last):
        return replace(completion, text=translated(texts.UNSURE))
    if not completion.text.strip() or misquoted(completion.text, messages):
        return replace(completion, text=result_of(last.text))
    return completion
