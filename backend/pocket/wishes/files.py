"""Listing, reading, writing, editing, searching, sending files."""

from random import Random

from backend.pocket.dialogue import Answer, Exchange, Result, User, World, call, quote, shell
from backend.pocket.words import (
    EXTENSIONS,
    KEYS,
    adjective,
    fact,
    filename,
    folder,
    invented,
    line,
    noun,
    number,
    path,
    phrase,
    repo,
    value,
)

LIST = (
    "{what|which} files {are|do we have|do I have|are there|exist|have I got|can you see|are lying}[ {here|in the workspace|in my folder|in this folder|there|around}]",
    "{list|show|give me|print|display|name|enumerate}[ me][ all] {the files|my files|files|all files|the contents of the workspace|everything in the workspace|what is in the workspace|the folder|the directory|the workspace}[ please]",
    "{what's|what is|what do we have|whats} in {the workspace|this folder|here|my folder|the directory|the current folder|there|this directory}",
    "{ls|files|list|dir|my files|directory listing|file list}",
    "{are there|is there|have I} {any files|anything|some files}[ {here|in the workspace|in my folder}]",
    "{let me see|I want to see|can I see|I'd like to see} {the files|what files there are|my files|what is here|what's in the workspace|the folder's contents}",
    "{what|which} {things|documents|stuff} {are|is|do I have|lie|live} {here|in the workspace|in my folder|around here}",
    "{give|show} me {an overview of the files|a listing|a file list|a directory listing|the list of files|an overview of the workspace|what you have in the workspace}",
    "{do I have|have I got|are there} {any|some} {files|documents}[ {here|in this chat|stored here}]",
    "{tell me|say} {what|which} files {there are|you see|you can find|I have|exist|are stored here}",
    "{how|what} does my {workspace|folder|directory} look like",
    "{look around|look at|browse|inspect|explore|check|scan} {the workspace|my folder|the folder|my files|this directory}",
    "{is|isn't} {the workspace|this folder|the folder|my directory} empty",
    "what have {I|we} {saved|stored|kept|collected|put} {here|so far|in the workspace}",
    "{overview|inventory|listing|contents} of {the workspace|my folder|my files|the files|this folder}",
)
LIST_KIND = (
    "{list|show|find|give me|display|which are|what are|get|look for|search for}[ me][ all] {the |my |}$kind files[ {here|in the workspace|we have|I have}]",
    "{which|what} $kind files {are there|do we have|do I have|exist|are here|have I got}",
    "{are there|do we have|is there|do I have} {any|some} $kind {files|file}[ here]",
    "{list|show|find|give me}[ me] {all files ending in|files ending with|files that end in|every file with extension|files with the ending|everything ending in} .$ext",
    "{list|show|find|ls|match} {files matching |the pattern |}*.$ext[ files]",
    "{where|how many} {are|} {my|the} $kind files",
    "{what|which} {files |}{with|of type|with extension|with the ending} {.$ext|$ext} {are there|do we have|exist|do I have}",
    "{search for|look for|find|get|collect|locate} {all |every |any |}{*.$ext|.$ext files|$kind files|$kind documents|files with the extension .$ext}",
    "{I need|I want|I'd like} {a list of|to see} {all |the |my |}$kind files",
    "{have we|have I|did I} {got|save|write|make} {any|some} $kind files",
    "{every|all|only} {the |}$kind {files|documents|ones}[{ please|}]",
    "{names of|list of} {all |}{the |my |}$kind files",
)
LIST_FOLDER = (
    "{what's|what is|what files are|which files are|whats|what do we have|what lies} in {the folder |the directory |folder |the |}$folder[ folder| directory]",
    "{list|show|ls|give me|display|see|print}[ me] {the files in|the contents of|everything in|files in|what is in|all files in|all files under} {the folder |the |}$folder[ folder| directory]",
    "{look|have a look|take a look|peek} {into|in|inside} {the folder |}$folder[ folder| directory]",
    "{ls|list|dir} $folder",
    "{which|what} {files|documents|things} {are|live|lie|sit|are stored|do we have|can you find} {in|inside|under|within} {the folder |the directory |folder |the |}$folder[ folder| directory]",
    "{tell me|say} what {is|files are|lies} {in|inside|under} {the folder |the |}$folder[ folder| directory]",
    "{browse|inspect|explore|check|open} {the folder |the directory |folder }$folder",
    "{contents|files|listing} of {the folder |the |folder |}$folder[ folder| directory]",
    "{is there|do we have} {anything|something|any file} {in|inside|under} {the folder |the |}$folder[ folder| directory]",
)
READ = (
    "{show|open|read|print|display|cat|view|get|give me|dump|output}[ me] {the file |the contents of |the content of |the text of |what is in |file |}$path[ please| for me]",
    "{what's|what is|what does it say|what stands|what's written|whats|what do we have|what have I written} in {the file |file |my |}$path",
    "{what does|tell me what} {the file |}$path {say|says|contain|contains|hold|read like|look like}",
    "{read|show|open}[ me] $path {to me|out loud|for me|now|aloud|and tell me what it says}",
    "{let me see|I want to see|I'd like to read|I want to read|I need to see|can I see|may I see|could I have} {the file |the contents of |what's in |}$path",
    "{have a look at|take a look at|look at|look into|look inside|check|check out|go through|inspect} {the file |}$path[ {please|and tell me what it says|for me}]",
    "{contents of|content of|text of|cat} $path",
    "$path{, what does it say|, please show it|: show it|, read it| - what's in it|, open it}",
    "{tell me|say|report} what {is|stands|I wrote|is written|it says} in {the file |my file |}$path",
    "{what|which text|what text} {is|do we find|did I write|did I put|stands|can be found|is stored} in {the file |my file |the document |}$path",
    "{pull up|bring up|fetch|load|present|reveal} {the file |the contents of |the document |}$path",
    "{I'd like|I want|I need} to {see|know|read|look at|view} {what's in |what is in |the file |what I wrote in |the text in |}$path",
    "{quote|recite|type out|write out|spell out|paste} {the file |the text of |the contents of |the whole of |}$path",
    "{read|give} me {the file |the document |what's in |}$path",
    "{how|what} does {the file |}$path {read|look|go|start}",
    "{what's|what is} the {content|text|contents} of {the file |}$path",
    "{please open|can you open|would you open|go open} $path",
    "{how about|let's see|let's read|let's look at|time to read} {the file |}$path",
)
READ_LINES = (
    "{show|read|print|give me|display|get}[ me] lines {$a to $b|$a-$b|$a through $b|from $a to $b|$a until $b|between $a and $b} {of|from|in} {the file |}$path",
    "{what's|what is|what stands} {in|on|at} lines {$a to $b|$a-$b|$a through $b} {of|in|from} $path",
    "{show|read|print}[ me] $path{, lines $a to $b| lines $a-$b| from line $a to line $b| from line $a to $b| between lines $a and $b|:$a-$b}",
    "lines $a to $b of $path",
    "{I want|I'd like|I need} {to see |to read |}lines {$a to $b|$a-$b|$a through $b} {of|from|in} {the file |}$path",
    "{what's|what is} {written |}{between|from} line{s|} $a {and|to} {line |}$b {of|in} $path",
    "{open|look at|quote|get|pull up} $path{,|} {from line|lines|line} $a to {line |}$b",
    "{read|show}[ me] {from |}line $a {to|until|through} {line |}$b {of|in} $path",
)
READ_FIRST = (
    "{show|read|print|give me|display|get}[ me] the first $b lines of {the file |}$path",
    "{what are|let me see|what do} the first $b lines {of|in} $path[ say]",
    "{the |}first $b lines of $path",
    "{the top|top} $b lines of $path",
)
KEY = (
    "{what's|what is|tell me|which is|whats|find|look up|get me} the $key {in|set in|from|according to|given in|defined in|written in} {the file |}$path",
    "{which|what} $key {is|does|stands} {set |configured |given |written |}in {the file |}$path[ have| use| say]",
    "{look in|check|open|read|look at} $path {and tell me the $key|for the $key|and give me the $key|and find the $key|and say what the $key is}",
    "{what|which} $key {does|do} $path {have|use|say|set|give|name|contain}",
    "{what|which} {value|setting} {does|has} {the |}$key {have|got} in $path",
    "{find out|check|see|tell me} {what|which} $key {is set|stands|is written|is used|we have} in $path",
    "{according to|in} $path{,|} {what|which} is the $key",
    "{$path: what's the $key|what $key is in $path|the $key in $path|the $key from $path}",
    "{does|look whether} $path {say|tell|contain|give} {the |a |what the |}$key{| is}",
)
WRITE = (
    "{write|put|store|save|jot down|note} {the text |the words |the line |}{'$text'|\"$text\"|'$text'|\"$text\"|$text} {to|into|in|in the file|to the file|in a file called|into a file named|in a new file|to a file called|as|into the file} $path",
    "{create|make|write|start|generate|set up} {a file |the file |a new file |file |a text file |}{called |named |}$path {with|containing|that says|saying|with the text|with the content|with the contents|that contains|with the line|whose content is|having|reading|which says|holding|and write|and put in|with content}[:] {'$text'|\"$text\"|$text|$text}",
    "{write|create|make} $path{: | with: | - | with content: | containing: | saying: }$text",
    "{save|put|write} this {to|in|into|as} $path: $text",
    "{I need|I want|I would like|please make me} {a file |}{called |named |}$path {with|that says|containing|saying} {'$text'|\"$text\"|$text}",
    "{new file|file} $path: {'$text'|\"$text\"|$text}",
    "{overwrite|replace|fill} $path with {the text |}{'$text'|\"$text\"|$text}",
    "{can you |}{write|create|save|make|produce} $path {so that it says|and put|and write|so it contains|and fill it with} {'$text'|\"$text\"|$text}[ {in it|inside|into it}]",
    "{write down|jot down|note|drop|stick|type|enter} {'$text'|\"$text\"|$text} {in|into|in the file|in a file named|in a file called} $path",
    "{make|create|start|open|produce} {a |a new |an empty |}{file|text file|document|note} {named|called|under the name|by the name of} $path {and|then} {write|put|type|insert|save} {'$text'|\"$text\"|$text} {in it|into it|inside|in there|there}",
    "{I want|I'd like|I need|let's have} {'$text'|\"$text\"} {saved|written|stored|put} {in|into|to|as} {the file |}$path",
    "{the file|file} $path {should|must|shall|has to} {contain|say|read|hold} {'$text'|\"$text\"|$text}",
    "{store|record|keep|put} {'$text'|\"$text\"|$text} {under|in|as|inside} $path",
    "{write|save|put} {'$text'|\"$text\"} {and save it as|and store it in|and call the file|and name it} $path",
)
WRITE_LINES = (
    "{write|create|make|save} {a file |the file |}{called |named |}$path with {these lines|the lines|the following lines|this text|the following}:\n$lines",
    "{put|write|save} {this|these lines|the following|the text below} {in|into|to} $path:\n$lines",
    "{write|create|make} {a {list|shopping list|todo list|list of things} in |}$path with {the lines|the items|these items|three lines|the entries}[:] $commas",
)
APPEND = (
    "{add|append|write} {the line |the text |a line |}{'$text'|\"$text\"|$text} {to|to the end of|at the end of|at the bottom of} {the file |my |}$path",
    "{append|add} to $path[:|, the line|the line] {'$text'|\"$text\"}",
    "{put|stick|tack|attach} {'$text'|\"$text\"} {at the end of|on the end of|onto|at the bottom of|below the rest in} {the file |}$path",
    "{extend|complete} $path {with|by} {the line |}{'$text'|\"$text\"}",
    "{add|append} {another|one more|a new|an extra} line {'$text'|\"$text\"|saying $text} to $path",
)
EDIT = (
    "{replace|change|swap|exchange} {'$old'|\"$old\"|$old|the word $old} {with|by|to|for|into} {'$new'|\"$new\"|$new} in {the file |my |}$path",
    "in {the file |}$path{,|} {replace|change|swap|turn|exchange|correct|rewrite} {'$old'|\"$old\"|$old} {with|by|to|into|for} {'$new'|\"$new\"|$new}",
    "{edit|modify|update|fix|alter} {the file |}$path{: change|, change| and change|: replace|, replace| and replace| so that} {'$old'|\"$old\"|$old} {to|with|by|becomes|into} {'$new'|\"$new\"|$new}",
    "{set|make|turn} {'$old'|\"$old\"|$old} {to|into} {'$new'|\"$new\"|$new} in {the file |}$path",
    "{it should say|I want} {'$new'|\"$new\"|$new} instead of {'$old'|\"$old\"|$old} in $path",
    "{put|write|use} {'$new'|\"$new\"|$new} {in place of|instead of|rather than|where it says} {'$old'|\"$old\"|$old} in {the file |}$path",
    "{fix the typo|correct the mistake|fix the mistake|there is a typo} in $path: {'$old' should be '$new'|$old should be $new|\"$old\" must be \"$new\"|not $old but $new|$old -> $new}",
    "rename $old to $new {in|inside|within} $path",
    "{substitute|exchange|trade|switch|swap out} {'$old'|\"$old\"|$old} {for|with|by} {'$new'|\"$new\"|$new} in {the file |}$path",
    "{in|inside|within} {the file |my file |}$path{,|} {'$old'|\"$old\"|$old} {should be|should become|must become|has to be|needs to be|ought to be} {'$new'|\"$new\"|$new}",
    "{every|the} {'$old'|\"$old\"} in $path {should|must|has to} {be|become|read|turn into} {'$new'|\"$new\"}",
    "{I misspelled|I mistyped|I got wrong|I wrote} {'$old'|\"$old\"|$old} in $path{, it should be|, it must be|, make it|, correct it to|, please write} {'$new'|\"$new\"|$new}",
    "{open|take|go to|go into} $path and {replace|change|swap|turn|switch} {'$old'|\"$old\"|$old} {with|to|for|into} {'$new'|\"$new\"|$new}",
    "{correct|amend|revise|alter|convert|adjust} {'$old'|\"$old\"|$old} {to|into} {'$new'|\"$new\"|$new} in {the file |}$path",
    "{$path: replace|$path: change|in $path:} {'$old'|\"$old\"|$old} {with|by|to|->|=>} {'$new'|\"$new\"|$new}",
    "{where|wherever} $path says {'$old'|\"$old\"|$old}{,|} {write|put|make it|use|it should say} {'$new'|\"$new\"|$new}[ instead]",
)
GREP = (
    "{search|grep|look|scan|hunt} {for |}{'$word'|\"$word\"|$word|the word $word} {in|in all|through|across|over} {the files|my files|all files|all my files|files|the workspace|everything|all the files}",
    "{search|grep|scan|go through|look through} {the files|my files|all files|the workspace|everything} for {'$word'|\"$word\"|$word|the word $word}",
    "{which|what} files {contain|mention|have|include|use|talk about|refer to} {'$word'|\"$word\"|$word|the word $word}",
    "{where|in which file|in which files} {is|does|do I mention|do I use|did I write|have I written|appears|occurs} {'$word'|\"$word\"|$word|the word $word}[ {used|mentioned|appear|occur|found|written|show up|come up|defined}]",
    "{find|locate|show|list|look up}[ me] {every line with|all lines with|lines containing|all occurrences of|every occurrence of|where it says|all places with|all mentions of|any mention of|the lines that mention} {'$word'|\"$word\"|$word}",
    "{grep|search|search for|look for|find the word|find the text} {'$word'|\"$word\"|$word}",
    "{is|does} {the word |}{'$word'|\"$word\"|$word} {anywhere in|mentioned in|in any of|appear in|show up in|occur in} {my files|the files|the workspace|these files|any file}",
    "{do|did} {I|we|any of my files|the files} mention {'$word'|\"$word\"|$word}[ anywhere| somewhere]",
    "{in what|in which|what} {file|files|place|document|documents} {do|can|did|does} {I|we|you} {find|use|mention|talk about|write about|see} {'$word'|\"$word\"|$word|the word $word}",
    "{hunt for|check for|search everything for|run a search for|do a search for|do a grep for|scan for} {'$word'|\"$word\"|$word|the word $word}",
    "{tell me|say} {where|in which files|which files} {'$word'|\"$word\"|$word|the word $word} {is|appears|occurs|is mentioned|is used|shows up|stands}",
    "{occurrences|mentions|uses} of {'$word'|\"$word\"|$word}[ in my files| in the workspace]",
    "{does|did} {anything|any file|any document|something} {here |}{mention|contain|refer to|talk about|include} {'$word'|\"$word\"|$word}",
    "{I'm looking for|I am searching for|I need|I can't find|help me find} {the word |the text |the line with |every mention of |the file with }{'$word'|\"$word\"|$word}",
    "{where|who} {did I put|did I mention|do I talk about|says|mentions|is there something about} {'$word'|\"$word\"|$word}",
)
GREP_PATH = (
    "{search|grep|look|scan} {for |}{'$word'|\"$word\"|$word|the word $word} in {the file |the folder |}$path",
    "{search|grep|scan|look through|go through} {the file |}$path for {'$word'|\"$word\"|$word|the word $word}",
    "{does|where does} {the file |}$path {mention|contain|have|use|say|include} {'$word'|\"$word\"|$word|the word $word}[ anywhere]",
    "{find|show|list}[ me] {every line with|all lines with|lines containing|all occurrences of|the lines that mention|where it says|the word} {'$word'|\"$word\"|$word} in {the file |}$path",
    "{where|on which line|in which line} {in|of} $path is {'$word'|\"$word\"|$word}",
    "is {'$word'|\"$word\"|$word} {in|mentioned in|found in|anywhere in} {the file |}$path",
    "{check|see|tell me} {whether|if} $path {mentions|contains|has|includes|says} {'$word'|\"$word\"|$word}",
    "{does|do} {'$word'|\"$word\"|$word|the word $word} {appear|occur|show up|stand|come up} in {the file |}$path",
    "{which|what} lines {of|in} $path {mention|contain|have|include} {'$word'|\"$word\"|$word}",
    "{where|how often|at which line} does {'$word'|\"$word\"|$word} {appear|occur|stand|come up} in $path",
    "{hunt|check|search} {for |}{'$word'|\"$word\"|$word} {inside|within|in} $path",
)
SEND = (
    "{send|give|mail|forward|pass|deliver|share|upload|transfer}[ me] {the file |}$path[ please| to me| here| over| to this chat| as a file]",
    "{can I have|I want|I need|I'd like|let me have|may I get|could I get} {the file |}$path {as a file|sent to me|here in the chat|on my phone|as a download|as an attachment}",
    "{attach|upload|download|drop} {the file |}$path[ here| for me| to the chat| in this chat]",
    "{send|get} $path {over|to my phone|to me|here|across|into the chat|to this chat}",
    "{ship|deliver|bring|hand|push|fetch|post} {me |over |}{the file |the document |}$path[ {please|here|to this chat|to my phone}]",
    "{I want|I need|I'd like|give me} {to download |to have |a copy of |to get |}{the file |}$path",
    "{get|fetch|bring} me {the file |the document |}$path[ {as a file|as an attachment|as a download|for my phone}]",
    "{could|can|may} {I|you} {have|get|download|send me} {a copy of |the file |}$path",
    "{send|post|put|share} {the file |the document |}$path {in|into|to} {this chat|the chat|telegram|me}",
    "{mail|message|hand|pass} me $path",
)
ATTACHED = (
    "{read|open|show} {it|this|this file|the file}",
    "{what's|what is} {in|inside} {it|this|this file|the file|here}",
    "what does {it|this|this file} say",
    "{have a look|look at this|here is a file|for you|please read|read this for me}",
)
MISSING = (
    "{read|open|show me|print|edit|send me|delete|search} {the file|a file|that file|it|something}",
    "{write|create|make} {a file|a new file|something}",
    "{change|replace} {the word|a word|something} in the file",
    "{what does|what's in} {the file|that file}{| say}",
)

LANGUAGES = {
    "python": "py",
    "Python": "py",
    "text": "txt",
    "markdown": "md",
    "Markdown": "md",
    "json": "json",
    "JSON": "json",
    "csv": "csv",
    "CSV": "csv",
    "log": "log",
    "shell": "sh",
    "html": "html",
    "HTML": "html",
    "yaml": "yaml",
    "pdf": "pdf",
    "PDF": "pdf",
    "toml": "toml",
    "javascript": "js",
    "css": "css",
    "image": "png",
    "png": "png",
}


def listing(world: World) -> Exchange:
    random = world.random
    roll = random.random()
    if roll < 0.4:
        words, arguments, prefix = world.say(LIST), {"pattern": "*"}, ""
    elif roll < 0.75:
        kind, extension = _kind(random)
        words = world.say(LIST_KIND, kind=kind, ext=extension)
        if kind.lower() in ("python", "shell") and world.chance(0.35):
            words = User(words.words.replace("files", "scripts"))
        arguments, prefix = {"pattern": f"*.{extension}"}, f".{extension}"
    else:
        where = (
            folder(random)
            if random.random() < 0.7
            else random.choice(
                (
                    f"{folder(random)}/{folder(random)}",
                    f"/repos/{repo(random)}",
                    f"/workspace/{folder(random)}",
                )
            )
        )
        words, arguments, prefix = (
            world.say(LIST_FOLDER, folder=where),
            {"pattern": "*", "path": where},
            f"{where}/",
        )
    step = call("list_files", **arguments)
    if random.random() < 0.15:
        return [
            words,
            step,
            Result(
                random.choice(
                    (
                        "no files",
                        "No files match.",
                        "(none)",
                        "No files.",
                        f"No files match {arguments['pattern']}.",
                    )
                )
            ),
            Answer("There are no such files."),
        ]
    names = _names(random, prefix)
    world.path = (
        names.split("\n")[0].split("  ")[0].split("\t")[0] if random.random() < 0.5 else world.path
    )
    return [words, step, Result(names), Answer(quote(names))]


def _kind(random: Random) -> tuple[str, str]:
    if random.random() < 0.6:
        kind = random.choice(tuple(LANGUAGES))
        return kind, LANGUAGES[kind]
    extension = random.choice(EXTENSIONS)
    return random.choice((f".{extension}", f".{extension}", f"*.{extension}", extension)), extension


def _names(random: Random, hint: str) -> str:
    count = random.choice((1, 1, 1, 2, 2, 3, 3, 4, 5, 9))
    names = []
    for _ in range(count):
        if hint.startswith("."):
            names.append(path(random, [hint[1:]]))
        elif hint:
            names.append(
                hint + filename(random, EXTENSIONS)
                if random.random() < 0.5
                else filename(random, EXTENSIONS)
            )
        else:
            names.append(
                random.choice(
                    (path(random, EXTENSIONS), filename(random, EXTENSIONS), f"{folder(random)}/")
                )
            )
    style = random.random()
    if style < 0.25:
        names = [
            f"{name}  {number(random)}{random.choice((' B', ' KB', ' bytes', 'K', ''))}"
            for name in names
        ]
    elif style < 0.35:
        names = [
            f"{name}\t{number(random)}\t2026-0{random.randint(1, 9)}-{random.randint(10, 28)} {random.randint(10, 23)}:{random.randint(10, 59)}"
            for name in names
        ]
    return "\n".join(names)


def content(random: Random, lines: int = 0) -> list[str]:
    count = lines or random.choice((1, 1, 1, 2, 2, 3, 3, 4, 5, 9))
    return [line(random) for _ in range(count)]


def shown(random: Random, lines: list[str], first: int = 1) -> str:
    """The forms in which a reading tool may show lines."""
    style = random.random()
    if style < 0.7:
        return "\n".join(lines)
    if style < 0.8:
        return "\n".join(f"{n}\t{text}" for n, text in enumerate(lines, first))
    if style < 0.9:
        return "\n".join(f"{n}: {text}" for n, text in enumerate(lines, first))
    return "\n".join([*lines, f"[lines {first}-{first + len(lines) - 1} of {number(random, 2)}]"])


def reading(world: World) -> Exchange:
    random = world.random
    roll = random.random()
    name = world.path = path(random)
    if roll < 0.7:
        world.lines = content(random)
        text = shown(random, world.lines)
        return [
            world.say(READ, path=name),
            call("read_file", path=name),
            Result(text),
            Answer(quote(text)),
        ]
    first, last = (
        (1, random.randint(2, 9)) if roll < 0.8 else sorted(random.sample(range(1, 200), 2))
    )
    last = min(last, first + 12) if random.random() < 0.5 else last
    slots = {"path": name, "a": str(first), "b": str(last)}
    words = world.say(READ_FIRST if roll < 0.8 else READ_LINES, **slots)
    world.lines = content(random, min(last - first + 1, random.randint(1, 9)))
    text = shown(random, world.lines, first)
    return [
        words,
        call("read_file", path=name, first=first, last=last),
        Result(text),
        Answer(quote(text)),
    ]


def key(world: World) -> Exchange:
    """One line of a file answers."""
    random = world.random
    name = world.path = path(random)
    asked = random.choice(KEYS) if random.random() < 0.6 else noun(random)
    sign = random.choice((" = ", "=", ": ", ": ", " is "))
    lines = content(random, random.randint(1, 7))
    lines = [
        f"{random.choice(KEYS)}{sign}{value(random)}" if random.random() < 0.6 else text
        for text in lines
    ]
    lines = [text for text in lines if asked not in text]
    answer = f"{asked}{sign}{value(random)}"
    lines.insert(random.randint(0, len(lines)), answer)
    world.lines = lines
    return [
        world.say(KEY, key=asked, path=name),
        call("read_file", path=name),
        Result("\n".join(lines)),
        Answer(answer),
    ]


def done(random: Random, *forms: str) -> Result:
    return Result(random.choice(forms))


def writing(world: World) -> Exchange:
    random = world.random
    roll = random.random()
    name = world.path = path(random)
    if roll < 0.75:
        world.lines = [phrase(random)]
        words = world.say(WRITE, path=name, text=world.lines[0])
    else:
        world.lines = [
            random.choice((line, phrase))(random) if roll < 0.9 else noun(random)
            for _ in range(random.randint(2, 5))
        ]
        words = world.say(
            WRITE_LINES[:2] if roll < 0.9 else WRITE_LINES[2:],
            path=name,
            lines="\n".join(world.lines),
            commas=_commas(random, world.lines),
        )
    text = "\n".join(world.lines)
    return [words, call("write_file", path=name, content=text), *wrote(random, name, text)]


def _commas(random: Random, items: list[str]) -> str:
    if random.random() < 0.5:
        return ", ".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"


def wrote(random: Random, name: str, text: str) -> Exchange:
    size = len(text.encode())
    result = done(
        random,
        f"Wrote {size} bytes to {name}.",
        f"Wrote {name} ({size} bytes).",
        f"Created {name}, {size} bytes.",
        f"wrote {name}: {size} bytes",
        f"Saved {name}.",
        f"{name}: {size} bytes written",
        f"Created {name} ({text.count(chr(10)) + 1} lines).",
        f"Replaced {name} ({size} bytes).",
    )
    return [result, Answer(f"Done: {result.text}")]


def append(world: World) -> Exchange:
    random = world.random
    name = world.path = path(random)
    text = " ".join(
        random.choice((noun, adjective, invented))(random) for _ in range(random.randint(1, 5))
    )
    return [
        world.say(APPEND, path=name, text=text),
        shell(f"echo '{text}' >> {name}"),
        Result(random.choice(("", "exit code: 0", "(no output)"))),
        Answer(f"Added to {name}: {text}"),
    ]


def piece(random: Random) -> str:
    roll = random.random()
    if roll < 0.6:
        return random.choice((noun, adjective, invented, number, value))(random)
    if roll < 0.8:
        return f"{adjective(random)} {noun(random)}"
    return random.choice(
        (
            f"{random.choice(KEYS)} = {value(random)}",
            f"{random.choice(KEYS)}={value(random)}",
            f"{random.choice(KEYS)}: {value(random)}",
            f"{noun(random)} {number(random)}",
            phrase(random),
        )
    )


def editing(world: World) -> Exchange:
    random = world.random
    name = world.path = path(random)
    old, new = piece(random), piece(random)
    if random.random() < 0.3:
        asked = random.choice(KEYS)
        old, new = (
            f"{asked}{sign}{value(random)}" for sign in [random.choice((" = ", "=", ": "))] * 2
        )
    words = world.say(EDIT, path=name, old=old, new=new)
    return [words, call("edit_file", path=name, old=old, new=new), *edited(random, name, old, new)]


def edited(random: Random, name: str, old: str = "old", new: str = "new") -> Exchange:
    result = done(
        random,
        f"edited {name}\n-{old}\n+{new}",
        f"edited {name}\n-{noun(random)} {old}\n+{noun(random)} {new}",
        f"Edited {name}.",
        f"Replaced 1 occurrence in {name}.",
        f"{name}: line {number(random)} changed",
        f"Changed {name} (line {number(random)}).",
        f"Edited {name}, line {number(random)}.",
    )
    return [result, Answer(f"Done: {first_line(result.text)}")]


def first_line(text: str) -> str:
    return text.split("\n")[0]


def needle(random: Random) -> str:
    roll = random.random()
    if roll < 0.7:
        return random.choice((noun, noun, adjective, invented, lambda r: r.choice(KEYS)))(random)
    if roll < 0.85:
        return random.choice(
            (
                "TODO",
                "FIXME",
                "ERROR",
                "import",
                "def",
                "password",
                "error",
                "warning",
                "http",
                "return",
                number(random),
                f"{invented(random)}_{noun(random)}",
                noun(random).upper(),
                invented(random).capitalize(),
            )
        )
    return f"{adjective(random)} {noun(random)}"


def hits(random: Random, word: str, name: str = "") -> str:
    rows = []
    for _ in range(random.choice((1, 1, 2, 2, 3, 4, 6))):
        around = random.choice(
            (
                f"{noun(random)} {word} {noun(random)}",
                f"{word} {noun(random)}",
                f"{noun(random)} {word}",
                f"{word} = {value(random)}",
                f"{fact(random)} {word}",
            )
        )
        rows.append(f"{name or path(random)}:{number(random)}:{random.choice(('', ' '))}{around}")
    return "\n".join(rows)


def search(world: World) -> Exchange:
    random = world.random
    word = needle(random)
    if random.random() < 0.6:
        words, step, name = world.say(GREP, word=word), call("grep", pattern=word), ""
    else:
        name = random.choice((path(random), path(random), folder(random)))
        words, step = (
            world.say(GREP_PATH, word=word, path=name),
            call("grep", pattern=word, path=name),
        )
    if random.random() < 0.2:
        return [
            words,
            step,
            Result(
                random.choice(
                    (
                        "no matches",
                        "No matches.",
                        f"No matches for {word}.",
                        "(no matches)",
                        "nothing found",
                    )
                )
            ),
            Answer(f"There is no {word} there."),
        ]
    found = hits(random, word, name if "." in name else "")
    world.path = found.split(":")[0]
    return [words, step, Result(found), Answer(quote(found))]


def sending(world: World) -> Exchange:
    random = world.random
    name = world.path = path(random, EXTENSIONS)
    return [world.say(SEND, path=name), call("send_file", path=name), *sent(random, name)]


def sent(random: Random, name: str) -> Exchange:
    result = done(
        random,
        f"Sent {name}.",
        f"Sent {name} ({number(random)} KB).",
        f"{name} was sent",
        f"sent {name}, {random.randint(1, 900)},{random.randint(100, 999)} bytes",
        f"sent {name}, {number(random)} bytes",
        f"{name} is on its way.",
        f"Queued {name}.",
    )
    return [result, Answer(f"Done: {result.text}")]


def attached(world: World) -> Exchange:
    """A file came with the message: its name stands in the context block."""
    random = world.random
    name = world.path = random.choice(
        (
            filename(random),
            f"inbox/{filename(random)}",
            f"/workspace/inbox/{filename(random)}",
            path(random),
        )
    )
    shape = random.choice(("{}", "{}", "{} ({} KB)", "{} ({} bytes)", "{}, {} KB")).format(
        name, number(random)
    )
    world.lines = content(random)
    text = "\n".join(world.lines)
    return [
        User(world.say(ATTACHED).words, files=(shape,)),
        call("read_file", path=name),
        Result(text),
        Answer(quote(text)),
    ]


def unclear(world: World) -> Exchange:
    return [world.say(MISSING), Answer("Which file, and what exactly?")]
