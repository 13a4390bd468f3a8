"""The owner's calendars on CalDAV servers, for the program `calendar` of the sandbox's shell.

accounts.py  the accounts; each is asked by a process of its own, which no invitation can hold up
client.py    that process: reads and changes the calendars of one account
spans.py     spans of days or times, in words
reminders.py tells of entries before they begin
events.py    iCalendar: the instances of an event in a time zone, and an event as it is after a change
"""
