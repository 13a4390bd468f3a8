"""Wordings: notes, what was said before, and what should happen later."""

REMEMBER = (
    "{remember|please remember|note|save|keep in mind|don't forget|do not forget|memorise|memorize|store|make a note|write down|note down|take note|keep a note|bear in mind|learn}[ that|:| that| for later that| for me that]: $fact",
    "{remember|please remember|note|save|keep in mind|don't forget|do not forget|memorize|make a note|take note|bear in mind|you should know|I want you to remember|I want you to know|never forget} that $fact",
    "{remember|note|save this|remember this|for your memory|keep this in mind|note this|for your notes|a note}: $fact",
    "$fact{, remember that|, please remember| - remember it|, keep that in mind|. Remember that|, don't forget it|. Please note that|, make a note of it|. Save that|, note it down}",
    "{can you|could you|would you|will you} {remember|note|save|keep in mind|make a note} that $fact",
    "{for the record|just so you know|fyi|FYI|by the way|one thing to remember|important}{:|,} $fact[{, remember it|. Please remember|, note that}]",
    "{I'd like|I want} you to {note|keep|save|store|know|retain} {that |this: |}$fact",
    "{put|add|save|write} {in|into|to} {your|the} {notes|memory} {that |: |}$fact",
    "{add a note|make a note|save a note|new note|store a note|take a note}{:| that| saying that| saying|,} $fact",
    "{keep|hold|retain} in {your |}{memory|mind} that $fact",
    "{please |}{don't|never|do not} forget{:|,| this:| that} $fact",
)
RECALL = (
    "what {did I|have I|did we|had I} {ever |once |already |}{say|tell you|told you|said|mention|write|decide|note|agree} {about|on|regarding|concerning} {my |the |our |}$topic[ {last time|before|earlier|again|back then|last week|yesterday|the other day}]",
    "{do|can|would} you {still |}{remember|recall|know|recollect} {my |the |our |what I said about my |what I said about the |what I told you about the |anything about the |anything on |what we said on }$topic",
    "{what do you know|what do you remember|what have you noted|what is noted|what do your notes say|what do you have|what have you kept|what have you saved|what did you store} {about|on|of|regarding} {my |the |our |}$topic",
    "{look up|recall|search your notes for|search your memory for|look in your notes for|find in your memory|check your notes about|check your notes for|search the notes for|dig up|look in your memory for|search our chats for|look back for} {my |the |our |what I said about my |what I told you about |}$topic",
    "{what was|remind me what was|what again was|tell me again what was} {that about |it about |my |the |our }$topic[ {again|I told you once|that I mentioned|we talked about|you should remember|from last time|we spoke of}]",
    "{have I|did I|have we} {ever |}{mentioned|tell you about|told you about|talked about|said anything about|said something about|spoken of} {my |the |our |}$topic[ before| in the past| here]",
    "{when did we|did we|when did I|when was it that we} {talk|speak|chat|last talk|last speak} about {the |my |our |}$topic",
    "{what's|what is|what was} {in your notes|in your memory|noted|saved|known|on record|stored} {about|on|regarding|concerning} {my |the |our |}$topic",
    "{search|check|go through|look through|consult|scan|browse} {your |the |our }{notes|memory|past chats|past conversations|old messages|history|memories} {for|about|concerning|and tell me about} {my |the |our |}$topic",
    "{did|have} {I|we} {ever |already |}{say|said|discuss|discussed|talk about|note|noted} {anything about |something about |}{my |the |our |}$topic",
    "{remind me|tell me again|tell me|repeat} {what I said about|what I told you about|what we said about|what we agreed about|what I wanted with} {my |the |our |}$topic",
    "{what|anything} {have you got|did we say|did I tell you|do I have noted|was said|have we said|did we discuss|did we settle} {about|on|regarding} {my |the |our |}$topic",
    "{any|do you have any|have you any|are there any} {notes|memory|memories|knowledge|record} {about|of|on} {my |the |our |}$topic",
    "{I forgot|I can't remember|I don't remember|I have forgotten|I no longer know|it slipped my mind|I can't recall|help me remember|do you know} {what|where|who|which|when|how much} {my|our|the} $topic {is|was|are}",
    "{I told you|I once told you|I said something|we talked|I mentioned something|there was something|we spoke|you noted something} {about|on} {my |the |our |}$topic{, what was it|, what was that| - what was it|. What was it|, remind me|, tell me again|. Do you remember}",
    "{as I said before|from your notes|from memory|in your memory|according to your notes|going by your notes}{,|:} {what is|what's|who is|where is|when is|which is} {my|the|our} $topic",
)
RECALL_PERSON = (
    "{what|who|where|which one} {does|did} {my {friend|boss|cousin|sister|brother|uncle|neighbour|colleague} |}$person {like|want|need|prefer|drink|eat|do|own|live|work|collect|say|order}",
    "{what is|what's} $person {allergic to|afraid of|fond of|looking for|bringing|called|working on|good at}",
    "{where|when|how} {does|did|is|was} $person {live|work|arrive|come|park|born|leave|travelling|staying}[ again]",
    "who {is|was} $person{ again|, did I say|, do you remember|, as I told you}",
    "{what do you know|what did I say|what did I tell you|what's in your notes|what have I said|is there anything|do you remember anything} about $person",
    "{do you remember|remind me|tell me again|I forgot|I can't recall} {what|where|when|who|which} $person {likes|wants|lives|works|is|said|needs|comes|does|prefers}",
)
RECALL_DONE = (
    "where did {I|we} {park|put|leave|hide|store|buy|keep|find|lend|lose|place|stow|lay} {the|my|our} $topic[ again]",
    "{when|where} {do|did|must|should} {I|we} {pick up|return|pay|get|renew|collect|hand in|need|take|use|cancel|meet for|bring back} {the|my|our} $topic[ again]",
    "who {fixed|repaired|sold me|gave me|recommended|lent me|borrowed|built|made|painted|brought|delivered|cleaned|insures|looks after} {the|my|our} $topic[ again]",
    "{which|what} $topic do {I|we} {like|use|prefer|drink|need|want|have|own|take|buy|order|wear}[ {best|again|most|usually|always}]",
    "how {much|many|long|old|big|often|far} {is|was|does|did} {my|our} $topic[ {cost|take|last|again|weigh|be}]",
    "{when|what time|what day|on which day} {is|was|does|did} {my|our} $topic[ {again|start|begin|end|due|over|happen}]",
    "where {is|are|was|did I say is} {my|our} $topic[ {again|now|kept|hidden|parked}]",
    "{what|which} {colour|size|brand|number|kind|type|price|make|model|shape} {is|was|of|has} {my|our} $topic",
    "what {did I|do I} {call|name|pay for|want with|keep in|write on|need for|owe for} {the|my|our} $topic",
)
RECALL_OWN = (
    "{what's|what is|who is|where is|which is|when is|whats|tell me|what was|who was|give me|say} {my|our} $topic[ {again|please|once more|then|these days}]",
    "{do you know|do you remember|can you tell me|could you tell me|tell me|remind me|say} {what|who|where|when|which} {my|our} $topic {is|was}",
    "{my|our} $topic{ again| is what| was what| please|, again|, what was it|, do you remember|, what is it|}",
    "$topic{ again|, remember|, what was it|, did I say| - do you remember|}?",
    "{and|now|so|hm,|well,} {what was|what is|what's} {my|our} $topic",
)
REMIND = (
    "{remind|please remind|ping|nudge} me $when to $errand",
    "{remind|please remind|ping|nudge} me to $errand $when",
    "$when{,|} {remind me to|please remind me to|tell me to|I must|I have to|I need to} $errand[{, remind me|}]",
    "{set|make|create|add|schedule} a reminder {to $errand $when|$when to $errand|for $when: $errand|$when: $errand}",
    "{can you|could you|will you} remind me {to $errand $when|$when to $errand}",
    "{reminder|remind me} $when: $errand",
    "{I need|I'd like|I want} {to be reminded|a reminder} {to $errand $when|$when to $errand}",
    "{don't let me forget|make sure I don't forget} to $errand $when",
    "{I have to|I must|I need to|I should|I want to|I've got to} $errand $when{, remind me|, please remind me|. Remind me|, can you remind me|, give me a nudge}",
    "{wake me|alert me|notify me|warn me|poke me|message me|tell me|give me a nudge|drop me a line|write to me|shout} $when {to|so that I|that I should|because I must} $errand",
    "{put|add} {a reminder|it} {in|on} {the calendar|my schedule|my list} {to|for me to} $errand $when",
    "{a reminder|reminder}{:| please:|,} $errand $when",
    "{reminder|remind me}{:| please:| -} {to |}$errand{,|} $when",
    "{schedule|plan|set up|set} {a reminder|an alert|an alarm|a nudge} {$when|for me $when} {to|saying|that I should|for} $errand",
    "{let me know|tell me} $when {to|that I should|that I must|that it's time to} $errand",
    "{I'll forget to|I always forget to|I tend to forget to} $errand{, remind me|, so remind me|. Remind me} $when",
)
_DIGEST = "{a summary|a digest|a report|an overview|a recap|an update|a short summary|a round-up|a brief|the news|a status report|a summary report|a write-up|a bulletin|a rundown|the summary|a resume}"
_NEWS = "{what happened|what changed|what is new|what's new|what went on|what was done|what was committed|what moved|what got done|the commits|the changes|the progress|the activity|the latest work|how things went|the work}"
_OF = "{of|on|about|for|from|covering}"
_IN = "{in|inside|on|to|at}"
_REPO = "{the |my |our |}{repo |repository |project |}$repo[ {repo|repository|project|code}]"
_SUM_UP = "{summarise|summarize|sum up|recap|digest|report on|review|wrap up|condense|give me the gist of|write up|outline|brief me on|do a summary of}"
_GET = "{send me|give me|write|make|I want|prepare|schedule|post|let me have|I'd like|I need|get me|deliver|provide|produce|mail me|bring me|compile|draw up|generate|set up|arrange|plan|put together|have ready|drop me|message me}"
SUMMARY = (
    f"{_GET} {_DIGEST} {_OF} {_REPO} $when",
    f"{_GET} $when {_DIGEST} {_OF} {_REPO}",
    f"$when{{,|}} {_GET} {_DIGEST} {_OF} {_REPO}",
    f"{_SUM_UP} {_REPO}[ {{for me|for us|to me}}] $when",
    f"$when{{,|}} {_SUM_UP} {_REPO}[ {{for me|for us}}]",
    f"{_SUM_UP} $when {_REPO}",
    f"{{can|could|would|will}} you {{please |}}{_SUM_UP} {_REPO}[ for me] $when",
    f"{{tell me|let me know|show me|inform me about|update me about|report|message me|I want to know|I'd like to hear|summarise|summarize|keep me posted on|fill me in on}} {_NEWS} {_IN} {_REPO} $when",
    f"$when{{,|}} {{tell me|let me know|report|message me|I want to know|I'd like to hear|summarise|summarize|sum up|fill me in on}} {_NEWS} {_IN} {_REPO}",
    f"{_DIGEST} {_OF} {_REPO}{{,|}} $when[ please]",
    f"{_REPO}{{: |, | - }}{_DIGEST} $when",
    f"{{schedule|plan|set up|add|start|arrange}} {{a repository summary|summaries|repo summaries|a regular summary|a digest job|a summary job|a recurring summary}} {{of|for|on}} {_REPO}{{,|}} $when",
    f"{{I want|I'd like|I need|may I have|can I get|could I have}} {_REPO} {{summarised|summarized|summed up|reviewed|recapped}} $when",
    f"$when {{I want|I'd like|I need}} {_REPO} {{summarised|summarized|summed up}}",
    f"{{keep me informed|keep me up to date|keep me in the loop|update me|brief me}} {{about|on}} {_REPO}{{,|}} $when",
    f"{{don't let me miss|make sure I hear|I don't want to miss}} {_NEWS} {_IN} {_REPO}{{,|:}} {{a summary|a digest|report}} $when",
)
TASK = (
    "$when{,|} {check|look at|look up|measure|report|show me|tell me|list|run|send me} $job",
    "{check|report|tell me|measure|show me|list|run|send me} $job $when",
    "{schedule|plan|set up} {a task|a job} $when: {check|report|list|run} $job",
)
