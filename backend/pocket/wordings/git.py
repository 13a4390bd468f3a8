"""Wordings: repositories."""

STATUS = (
    "{what's|what is|show|tell me|give me|check|print|get}[ me] {the |}{git status|status|state|git state} {of|in|for} {the |my |}$repo[ {repo|repository|project}]",
    "{git status|status|git st} {of |in |for |}{the |}$repo[ {repo|repository}]",
    "{what|which} {files |}{have|has|are|is} {changed|modified|been changed|been modified|uncommitted|touched|dirty|new} in {the |my |}$repo[ {repo|repository|project}]",
    "{is|are} {there |}{anything|any changes|something} {uncommitted |to commit |changed |new |}in {the |}$repo[ {repo|repository}]",
    "{is|are} {the |my |}$repo {repo |repository |}{clean|dirty|up to date|committed}",
    "{which|what} branch is {the |}$repo {repo |repository |}on",
    "{do I have|are there|have I got|did I leave} {uncommitted changes|uncommitted work|open changes|unsaved work|local changes} in {the |my |}$repo[ {repo|repository|project}]",
    "{how does|how is} {the |}$repo {repo |repository |}{look|doing|stand}",
    "{look at|check on|check} the {repo|repository} $repo",
    "{does|has} {the |my |}$repo {repo |repository |project |}{have|got} {uncommitted changes|any changes|modifications|uncommitted work|something to commit|untracked files}",
    "{what's|what is} {going on|new|happening|uncommitted|pending|the situation|modified|changed|dirty} in {the |my |}$repo[ {repo|repository|project}]",
    "{tell me|say|report} {what changed|what is uncommitted|which files changed|the state of things|which files are modified|whether anything changed} in {the |}$repo[ {repo|repository}]",
    "{any|are there} {changes|modifications|modified files|uncommitted files|changed files|local changes|untracked files} in {the |my |}$repo[ {repo|repository|project}]",
    "{how do|where do} things stand in {the |}$repo[ {repo|repository|project}]",
    "{run|do|show} {a |}git status {on|in|for} {the |}$repo",
    "{is|did} {anything|something} {pending|changed|modified|waiting|change} in {the |my |}$repo[ {repo|repository}]",
    "{state|condition} of {the |}{repo|repository|project} $repo",
)
DIFF = (
    "{show|print|give me|display|let me see|get}[ me] {the |}{diff|git diff|changes|uncommitted changes|differences|modifications|edits} {of|in|for} {the |my |}$repo[ {repo|repository|project}]",
    "{git diff|diff} {of |in |for |}{the |}$repo[ {repo|repository}]",
    "{what|what exactly|what all} {did I change|have I changed|changed|was changed|has changed|did we change|was edited|did I modify|is different} {in|inside} {the |my |}$repo[ {repo|repository|project}] {line by line|exactly|in detail|since the last commit|compared to the last commit|word for word}",
    "{show|let me see|give me} {exactly |}what {changed|I changed|was changed|is different} in {the |}$repo[ {repo|repository}]",
    "{how|what} does the diff {of|in|for} {the |}$repo look[ like]",
    "{let me see|I want to see|I'd like to see|can I see|show me} {the exact changes|the diff|the changed lines|the modified lines|the edits|the patch|my edits} {in|of|for} {the |my |}$repo[ {repo|repository|project}]",
    "{which|what} lines {changed|did I change|were changed|have been modified|are different|did I edit} in {the |my |}$repo[ {repo|repository|project}]",
    "{run|do|make|print|show} {a |}git diff {on|in|for|of} {the |}$repo",
    "{the |a |}{patch|diff|changed lines} {of|for|in} {the |}$repo[ {repo|repository}]",
    "{what|which edits} {did I|have I|did we} {edit|modified|do|make|made} {in|to} {the |my |}$repo {code|repo|repository|project}",
    "{compare|show how} {the |}$repo {repo |repository |}{with|differs from|to} {its |the |}last commit",
)
DIFF_REVISION = (
    "{show|print|give me|let me see}[ me] {the |}{changes|diff|git diff} of {commit |revision |}$revision in {the |}$repo[ {repo|repository}]",
    "{what|which changes} {did|does|was in|came with} {commit |revision |}$revision {change|do|bring|contain|}in {the |}$repo[ repo]",
    "{git diff|diff} {the |}$repo {at|against|since|for} $revision",
)
COMMIT = (
    "{commit|git commit|check in} {the changes|everything|all changes|all|my changes|my work|what I have|it all} {in|of} {the |my |}$repo[ {repo|repository|project}] {with|using} {the message|message|the commit message|the text} {'$text'|\"$text\"|$text}",
    "{commit|git commit} {the |my |}$repo[ {repo|repository}][ changes]{ with message| with the message|, message:|: |, message} {'$text'|\"$text\"|$text}",
    "{commit|git commit} {to|in} {the |}$repo{: | with message | with the message |, message }{'$text'|\"$text\"|$text}",
    "in {the |}$repo{,|} commit {everything|all|the changes|my changes|my work} {as|with message|with the message|under the message} {'$text'|\"$text\"|$text}",
    "{make|create|do} a commit in {the |}$repo[ {repo|repository}] {saying|with the message|called|with message|that says|titled} {'$text'|\"$text\"|$text}",
    "{save|record} the {changes|work} in {the |}$repo {as a commit|in git|in a commit} {saying|with the message|with message} {'$text'|\"$text\"|$text}",
    "{put|record|store|save} {everything|all changes|my changes|the changes|the work} in {the |}$repo {into a commit|in a commit|as a commit|in git} {with the message|with message|named|called|saying} {'$text'|\"$text\"|$text}",
    "{commit|check in} {what is in|what changed in|the work in|whatever is in} {the |}$repo {with|as|under|using} {the message |message |}{'$text'|\"$text\"|$text}",
    "{commit|git commit} in {the |}$repo{,| and} {use|write|take|the message is|message is|message should be} {'$text'|\"$text\"|$text}[ as the message]",
    "{with the message|message} {'$text'|\"$text\"}{,|} commit {the |}{changes in |}$repo",
    "{finish|wrap up|seal} the work in $repo with {a commit|the commit message|a commit named} {'$text'|\"$text\"}",
)
COMMIT_FILE = (
    "{commit|git commit} {only |just |}{the file |}$path in {the |}$repo {with|using} {the message|message|the commit message} {'$text'|\"$text\"|$text}",
    "in {the |}$repo{,|} commit {only |just |}$path {as|with message|with the message|saying} {'$text'|\"$text\"|$text}",
)
