"""Mail accounts of the owner's: read by IMAP, sent by SMTP.

account.py     an account: what is new in it, its messages, letters that are sent by it
index.py       which messages there are, and their words, in a file of its own for each account
connection.py  the connections with its servers, by imap-tools and smtplib
oauth.py       signing in without a password
letter.py      letters: their bytes, and all that an owner sees of them

Messages become text inside a sandbox (agent.documents.messages).
"""
