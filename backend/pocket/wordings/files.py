"""Wordings: listing, reading, writing, editing, searching and sending files."""

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
    "{give|get|fetch|read out}[ me] {the names of|a list of|an index of} {all |}{the |my |}{files|documents|things}[ {here|you see|that exist|in the workspace}]",
    "{which|what} {names|files|things} {do you see|can you see|show up|are stored|did I leave|lie around|have I put} {here|in the workspace|in my folder|in this place|there}",
    "{what's|what is} {lying|stored|saved|kept|sitting} {around |}{here|in the workspace|in my folder|in this chat}",
    "{I forgot|I don't know|remind me|I can't remember|tell me} {what|which files} {I have|I saved|there is|there are|I stored|we have} {here|in the workspace|so far}",
    "{how many|count the} files {are|} {here|in the workspace|there}",
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
    "{what|which} {of my files|of the files|of these files|documents} {are|is} {of kind |}{$kind|.$ext}{| files}",
    "{give|get|bring|tell}[ me] {the names of|a list of|every one of} {all |}{my |the |our |}$kind {files|documents|items}",
    "{I'm looking for|I search|I want|I need} {all |any |my |the |}{$kind|.$ext} files",
    "{how many|count the} $kind files {do I have|are there|have we got|}",
    "{where did I put|where are|where do I find} {all |}{my |the |}$kind files",
    "{only|just} {show|list|print|give me} {the |my |}{$kind|.$ext} files",
    "{is there|do we have|do I have|is here} {a|any|some} {$kind|.$ext} file[ {here|anywhere|in the workspace|somewhere}]",
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
    "{what|which files} {did I put|have I saved|did we store|have we got|lie around|are kept|can I find} {in|inside|under} {the folder |my |the |}$folder[ folder| directory]",
    "{I want|I need|I'd like|let me} {to see |see |to know }{what's in|what is in|everything in|the files in} {the folder |my |the |}$folder[ folder| directory]",
    "{$folder: what's in it|$folder folder: list it|the files in $folder|everything under $folder|what $folder has inside}",
    "{what does|what has} {the folder |my |the |}$folder[ folder| directory] {contain|hold|have in it|have inside|got}",
    "{go into|go to|walk through|list everything below|tell me about} {the folder |the directory |folder }$folder",
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
_TEXT = "{'$text'|\"$text\"|$text|$text}"
_WRITE = "{write|put|store|save|jot|note|place|record|enter|type|drop|stick|scribble|set down|keep|log|dump|file|print|insert}"
_INTO = "{into|to|in|in the file|to the file|in a file called|into a file named|in a new file|to a new file|into the file|into a new file called|in a file by the name of|under|in the document|into a document called}"
_MAKE = "{create|make|start|generate|set up|produce|open|prepare|begin|add|build|give me|I need|I want|I'd like|put together}"
_FILE = "{a file|the file|a new file|file|a text file|a file called|a file named|a new file called|a document|a note called|a small file|the new file|a document named}"
_HOLDING = "{with|containing|that says|saying|with the text|with the content|with the contents|that contains|with the line|whose content is|having|reading|which says|holding|with content|that holds|and put in it|and write in it|with the words|consisting of|whose text is|that reads|with this in it:|with inside}"
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
    f"{_WRITE} {_TEXT} {_INTO} $path[ {{please|for me|now}}]",
    f"{_WRITE} {_INTO} $path{{:|,| this:| the following:| the text| the words| the line| the sentence|}} {_TEXT}",
    f"{_INTO} $path{{,|}} {_WRITE}{{ this|}}{{:| the text| the line| the words|}} {_TEXT}",
    f"{_MAKE} {_FILE} $path {_HOLDING} {_TEXT}",
    f"{_MAKE} $path{{,|}} {_HOLDING} {_TEXT}",
    f"{_MAKE} {_FILE} {_HOLDING} {_TEXT}{{,|}} {{and call it|and name it|called|named|and save it as|under the name}} $path",
    f"{{let|have|make}} $path {{say|hold|contain|read|consist of}}{{:|}} {_TEXT}",
    f"{{I want|I'd like|I need|please keep|we need|let us keep}} {_TEXT} {{in|inside|kept in|stored in|written to|saved as|as|on disk as}} {_FILE} $path",
    f"{{a file|a new file|new note|note|new document|file|text file|a little file}} $path{{:| with| saying| -| that says| containing|,}} {_TEXT}",
    f"{_TEXT} {{goes|belongs|should go|must go|has to go|is to go|shall go}} {{into|in|to}} {{the file |a file called |a new file |}}$path",
    f"{_TEXT} - {{write that to|save that as|put that in|store that in|keep that in|file that under}} $path",
    f"{{save|store|keep|write|put}} {{this|that|the text|this text|this line|this sentence|the following|the words}} {{under|as|in|to|into}} $path{{: | - |, | with }}{_TEXT}",
    f"{{can|could|would|will}} you {{create|make|start|generate|set up|produce|prepare|begin|add|build}} {_FILE} $path {_HOLDING} {_TEXT}",
    f"{{can|could|would|will}} you {_WRITE} {_TEXT} {_INTO} $path",
)
WRITE_LINES = (
    "{write|create|make|save} {a file |the file |}{called |named |}$path with {these lines|the lines|the following lines|this text|the following}:\n$lines",
    "{put|write|save} {this|these lines|the following|the text below} {in|into|to} $path:\n$lines",
    "{write|create|make|start|set up|prepare} {a {list|shopping list|todo list|list of things|packing list|checklist} in |a file |the file |}$path with {the items|these items|the entries|the things|the names|}[:] $commas",
    "{put|write|save|note|store} {the list|the items|these|a list with|a list of|the names|} $commas {in|into|to|as} {the file |a file called |a list called |}$path",
    "{I need|make|start|create|give me} a {list|shopping list|todo list|packing list|checklist|guest list} {in|called|named} $path{: | with | of | - }$commas",
    "{list|packing list|todo list|shopping list|new list} $path{: | with | - }$commas",
)
APPEND = (
    "{add|append|write} {the line |the text |a line |}{'$text'|\"$text\"|$text} {to|to the end of|at the end of|at the bottom of} {the file |my |}$path",
    "{append|add} to $path[:|, the line|the line] {'$text'|\"$text\"}",
    "{put|stick|tack|attach} {'$text'|\"$text\"} {at the end of|on the end of|onto|at the bottom of|below the rest in} {the file |}$path",
    "{extend|complete} $path {with|by} {the line |}{'$text'|\"$text\"}",
    "{add|append} {another|one more|a new|an extra} line {'$text'|\"$text\"|saying $text} to $path",
    "{add|append} {'$text'|\"$text\"|$text|$text} {to|onto|at the end of|at the bottom of|as the last line of|as a new line in} {the file |my |the list |}$path[ {please|too|as well|at the end}]",
    "$path {needs|should also have|also needs|should get|gets|lacks} {'$text'|\"$text\"|$text}[ {as a last line|at the end|too|as well}]",
    "{$text also goes in|also put $text in|add $text as well to|and $text into|also add $text to|also write $text at the end of} $path",
    "{to|at the end of|at the bottom of} {the file |}$path{,|} {add|append|attach|put} {'$text'|\"$text\"|$text}",
)
_REPLACE = "{replace|change|swap|exchange|turn|correct|rewrite|alter|modify|switch|convert|amend|update|fix|substitute|edit|trade|adjust|revise|transform|move}"
_OLD = "{'$old'|\"$old\"|$old|$old|$old|the word $old|the text $old|the entry $old}"
_NEW = "{'$new'|\"$new\"|$new|$new|$new}"
_BY = "{with|by|to|for|into|->|=>}"
_AT = "{in|inside|within|of|over in|in the file|in my file|in the document}"
_LET = "{should be|should become|must become|must be|has to be|needs to be|ought to be|should read|is now|becomes|shall be|is really|is meant to be|was meant to be|should have been}"
EDIT = (
    f"{_REPLACE} {_OLD} {_BY} {_NEW} {_AT} $path",
    f"{_REPLACE} {_OLD} {_AT} $path {_BY} {_NEW}",
    f"{_AT} $path{{,|:|}} {_REPLACE} {_OLD} {_BY} {_NEW}",
    f"{_AT} $path{{,|:|}} {_OLD} {_LET} {_NEW}",
    f"{_OLD} {_AT} $path {_LET} {_NEW}",
    f"{{edit|modify|update|fix|alter|open|take|go to|go into|correct|adapt|work on}} {{the file |my |}}$path{{: |, | and |; | so that you }}{_REPLACE} {_OLD} {_BY} {_NEW}",
    f"{{make|turn|get}} {_OLD} into {_NEW} {_AT} $path",
    f"{{it should say|I want|we want|please have|there should be|I'd rather have|we need|it must say|let it say|make it say}} {_NEW} {{instead of|rather than|in place of|not}} {_OLD} {_AT} $path",
    f"{{put|write|use|insert|place|enter|type}} {_NEW} {{in place of|instead of|rather than|where it says|where you find|where now stands|for|over}} {_OLD} {_AT} $path",
    f"{_AT} $path{{,|}} {{put|write|use|I want|we need|there should be}} {_NEW} {{instead of|in place of|rather than|where it says}} {_OLD}",
    "{fix the typo|correct the mistake|fix the mistake|there is a typo|there's an error|a slip|correct an error|a mistake} in $path: {'$old' should be '$new'|$old should be $new|\"$old\" must be \"$new\"|not $old but $new|$old -> $new|it says $old, should be $new|$old, must be $new|I meant $new, not $old}",
    f"{{rename|re-name}} {_OLD} {{to|into|as}} {_NEW} {_AT} $path",
    "{every|the|that} {'$old'|\"$old\"} in $path {should|must|has to|needs to|shall} {be|become|read|turn into} {'$new'|\"$new\"}",
    f"{{I misspelled|I mistyped|I got wrong|I wrote|I put|I typed|it says|it still says|we wrote|there stands}} {_OLD} in $path{{, it should be|, it must be|, make it|, correct it to|, please write|, change it to|, I meant|, I want|; it is|, but it's}} {_NEW}",
    f"{{$path: replace|$path: change|in $path:|$path,}} {_OLD} {{with|by|to|->|=>}} {_NEW}",
    f"{{where|wherever|when|if}} $path {{says|has|reads|still says|mentions}} {_OLD}{{,|}} {{write|put|make it|use|it should say|make that|I want|turn it into}} {_NEW}[ instead]",
    f"{_OLD} {{is wrong|is no longer right|is outdated|is old|is out|was a mistake|is not right}} in $path{{, make it|, it is|, put|, it should be|: write|, now it's|, use}} {_NEW}",
    f"{{can|could|would|will}} you {_REPLACE} {_OLD} {_BY} {_NEW} {_AT} $path",
    f"{{take out|throw out|kick out|drop|pull out}} {_OLD} {{and put in|and put|and write|and insert|for}} {_NEW} {_AT} $path",
    "s/$old/$new/ {in|on} $path",
)
SET_KEY = (
    "{set|change|update|put|turn|switch|move|adjust|make|modify|alter|raise|lower|bring} {the |my |our |the value of |the value of the }$key {in|of|from|inside} {the file |my |}$path {to|to be|as|into|=|to read} $value",
    "{set|change|update|put|turn|switch|move|adjust|modify|alter|bring} {the |my |our }$key {to|as|into} $value {in|inside} {the file |my |}$path",
    "{in|inside} {the file |my |}$path{,|:|} {set|change|update|put|turn|make|adjust|switch} the $key {to|as} $value",
    "the $key {in|of} {the file |}$path {should be|must be|has to be|needs to be|ought to be|is now|shall be|should become|should read} $value",
    "{I want|I need|we need|I'd like|there should be} {the |a }$key {of|to be|at} $value in {the file |}$path",
    "{use|give it|take|make it|put in} $value {as|for} the $key in {the file |}$path",
    "{edit|open|update|adapt} $path{: |, | and |; }{set the |set |make the |change the }$key {to|=|as} $value",
    "{give|hand} {the file |}$path {a|the} $key {of|=} $value",
    "$path{:|,|} {new |}$key{ =|:| is now| should be|} $value",
)
_SEARCH = "{search|grep|look|scan|hunt|comb|check|go|dig}"
_SEEK = "{search for|look for|grep for|grep|find|locate|hunt for|scan for|seek|check for|track down|spot|dig for|hunt down}"
_FILES = "{the files|my files|all files|all my files|the workspace|everything|all the files|every file|these files|the whole workspace|the documents|my documents|the code|all the code|our files|my folder}"
_WORD = "{'$word'|\"$word\"|$word|$word|the word $word|the text $word|the string $word|the term $word|the name $word}"
_STANDS = "{is|appears|occurs|is mentioned|is used|shows up|stands|comes up|is defined|is found|is written|turns up|is named|is set}"
_HOLD = "{contain|mention|have|include|use|talk about|refer to|hold|name|speak of|say|call|import|define|deal with}"
_LINES = "{every line with|all lines with|the lines with|lines containing|all occurrences of|every occurrence of|each mention of|all places with|all mentions of|any mention of|the lines that mention|every place that has|the uses of|the places with|each line that says}"
GREP = (
    f"{_SEARCH} {{through|in|across|over|inside|all through}} {_FILES} for {_WORD}",
    f"{{search|grep|scan|comb|check}} {_FILES} for {_WORD}",
    f"{_SEEK} {_WORD} {{in|in all|through|across|over|inside|within|anywhere in|somewhere in|among}} {_FILES}",
    f"{{which|what|which of my|which of the}} {{files|documents|scripts|texts}} {_HOLD} {_WORD}",
    f"{{which|what}} {{file|document|script|text}} {{contains|mentions|has|includes|uses|talks about|refers to|holds|names|says|defines|speaks of}} {_WORD}",
    f"{{where|in which file|in which files|in what file|at which place|in which line|in which document}} {{is|was}} {_WORD} {{used|mentioned|found|written|defined|set|named|called|declared|imported|noted|stored}}[ in the files| in the code]",
    f"{{where|in which file|in which files|in what file|in which document}} {{does|do|did|can}} {_WORD} {{appear|occur|show up|come up|stand|turn up|get used|get defined}}",
    f"{{find|locate|show|list|look up|print|give|get|collect}}[ me] {_LINES} {_WORD}[ {{in the files|in my files|please|anywhere|in the workspace}}]",
    f"{_SEEK} {{'$word'|\"$word\"|$word}}[ {{please|everywhere|in here|in the files|in all of it|in the workspace}}]",
    f"{{is|was}} {_WORD} {{anywhere in|mentioned in|in any of|somewhere in|used in|contained in|found in|named in}} {_FILES}",
    f"{{does|do|did}} {{any of my files|the files|any file|one of the files|anything in the workspace|some file|any document}} {_HOLD} {_WORD}",
    f"{{do|does|did}} {_WORD} {{appear|occur|show up|come up|stand|exist|turn up}} {{in|anywhere in|somewhere in}} {_FILES}",
    f"{{in what|in which|what}} {{file|files|place|document|documents}} {{do|can|did}} {{I|we|you}} {{find|use|mention|talk about|write about|see|have|name}} {_WORD}",
    f"{{run|do|make|start|try}} {{a search|a grep|a text search|a full search|a lookup}} {{for|on}} {_WORD}[ in {_FILES}]",
    f"{{tell me|say|find out|show me|see|check|let me know}} {{where|in which files|which files|in which file|which line}} {_WORD} {_STANDS}[ in {_FILES}]",
    f"{{occurrences|mentions|uses|all uses|places|lines|hits}} {{of|with|for}} {_WORD}[ in {_FILES}]",
    f"{{I'm looking for|I am searching for|I need|I can't find|help me find|I want to find|I lost|I try to find}} {{the line with|every mention of|the file with|the file that mentions|the place with|the file where I wrote|the lines about}} {_WORD}",
    f"{{which|what}} {{lines|places|line|spots}} {{mention|have|contain|say|use|hold|name}} {_WORD}[ in {_FILES}]",
    f"{{I wrote|I noted|I put|there is|we had|I mentioned}} {{something about |something with |a line about |}}{_WORD} in {{one of my files|some file|a file}}{{, which one|, find it|, where|, which file is it}}",
    f"{{find|look up|get|locate}} {{the definition of|the function|the variable|the setting|where I wrote|where it says|the line that says|the place that says|who calls}} {_WORD}",
)
GREP_PATH = (
    f"{_SEARCH} {{in|through|inside|into}} {{the file |the folder |}}$path for {_WORD}",
    f"{{search|grep|scan|look through|go through|comb|check}} {{the file |the folder |}}$path for {_WORD}",
    f"{_SEEK} {_WORD} {{in|inside|within|anywhere in|somewhere in}} {{the file |the folder |}}$path",
    f"{{does|where does|whether}} {{the file |}}$path {{mention|contain|have|use|say|include|hold|name}} {_WORD}[ {{anywhere|somewhere|at all}}]",
    f"{{find|show|list|print|give|get}}[ me] {_LINES} {_WORD} {{in|of|from}} {{the file |}}$path",
    f"{{where|on which line|in which line|at what line}} {{in|of}} $path {{is|stands|do I find|does one find|comes}} {_WORD}",
    f"{{is|was}} {_WORD} {{in|mentioned in|found in|anywhere in|named in|used in|written in}} {{the file |}}$path",
    f"{{check|see|tell me|find out|look}} {{whether|if|where}} $path {{mentions|contains|has|includes|says|uses|names}} {_WORD}",
    f"{{does|do|where does|how often does}} {_WORD} {{appear|occur|show up|stand|come up|turn up}} in {{the file |}}$path",
    f"{{which|what}} {{lines|line}} {{of|in}} $path {{mention|contain|have|include|say|hold|mentions|has}} {_WORD}",
    "{grep|search} {'$word'|\"$word\"|$word} $path",
    f"{{run|do}} {{a search|a grep}} for {_WORD} {{in|on|over}} $path",
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
