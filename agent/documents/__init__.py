"""A person's own documents: their text in passages, searched by words and by meaning.

extraction.py  one document to passages (a program of its own, inside of a sandbox)
messages.py    mail messages to text and attachments, for it and for agent.mail
office.py      Word, OpenDocument, Excel and PowerPoint files, for it
encodings.py   guesses the encoding of a text, for it
reading.py     runs it there
library.py     what one chat may see: list, search, show, add, forget
indexer.py     reads waiting documents and watches the owner's folders (which files: agent.files), in the background
"""
