"""Messaging apps, commands and services around the agent.

intake.py access.py attachments.py       messages on their way into the inbox, who may write, files that come along
live_replies.py delivery.py rate_limiter.py   what a turn shows; its reply, sent; how fast an app may be sent to
channel.py telegram/ matrix/ terminal.py messaging_apps.py   what each app implements, the apps, which one has a chat
commands/ approval_question.py texts.py markdown_dialect.py voice/   commands and buttons, questions to owners, texts
service.py holder.py acts.py connected_terminals.py totp.py   the service; what it changes for others; its terminals
cli/ page/ metrics.py                    the command line, the owner's page, and figures
job_actions.py night_shift.py            what jobs do beyond a turn
settings.py config_file.py agent_config.py secret_values.py state.py   configuration, and the state folder
setup/ backup.py restore.py upgrade.py installed_program.py   the program's installation and its state's copies
localgram/                               a local Bot API server, for the demo and the tests
"""
