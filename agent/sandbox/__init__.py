"""Where every process of a tool runs: one bubblewrap per call.

sandbox.py               one chat's sandbox: run a command; those of all chats; doctor's check from inside
files.py                 a chat's files, by the paths that commands see, and whose text they may hold
sandbox_config.py        what all sandboxes share; puts a call together and watches it
history.py               what turns changed in a workspace, and taking it back
limits.py                how much disk, memory and time; ends a call that uses more

bwrap_process.py         one running bubblewrap; the socket on which its commands are answered outside
long_running.py          a program that keeps running, with pipes to it
bubblewrap.py            its arguments: what a tool's process sees of the file system; verifies the mounts of a repository
seccomp.py               the system call filter
rootfs.py                the prepared / and /etc
gitdirs.py               the git directories of a repository, which commands may neither change nor make

privileges.py            the user that tools act as
unprivileged_server.py   starts what runs as that user, and ends it when this program dies (its own process)
openat2.py               files beneath a directory, whatever the path says

cgroup.py                the kernel's own accounting, where systemd delegates it

observer.py              what is told for the ledger
hosts.py                 which hosts may be reached
proxy.py                 the way to them, for one call
output_buffer.py         output, cleaned and truncated
host_report.py           the text of /host.txt
"""
