"""Matrix: syncs to messages, commands and presses; messages and live views to a homeserver.

app.py               the app: log in, listen, shut down
homeserver.py        requests to the homeserver, and their errors
session.py           the bot's device, kept in the state folder
sync.py              long polling of /sync
encryption.py        keys and devices, with matrix-nio
verification.py      devices verified by emoji
timeline.py          events of rooms, invitations, messages whose key has not come yet
incoming_message.py  a message as a row of the inbox
rooms.py             rooms and their members; the keys of chats
channel.py           texts in parts, files, edits, reactions
keyboards.py         buttons as numbers
live.py              the live view of a turn; Markdown to HTML, long texts in parts
"""
