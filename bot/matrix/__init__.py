"""Matrix: syncs to messages, commands and presses; messages and live views to a homeserver.

app.py               the app: logging in, listening, the end
homeserver.py        requests to the homeserver, and what can go wrong
session.py           the bot's device, kept in the state folder
sync.py              long syncs, and what is wrong with them
encryption.py        keys and devices; matrix-nio is known to the folder alone
verification.py      devices verified by emoji
timeline.py          events of rooms, invitations, messages that wait for their key
incoming_message.py  a message as a row of the inbox
rooms.py             rooms and their members; the keys of chats
channel.py           texts in parts, files, edits, reactions
formatted.py         Markdown to HTML, long texts in parts
keyboards.py         buttons as numbers
live.py              the live view of a turn
"""
