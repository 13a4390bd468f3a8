"""Where every process of a tool runs: one bubblewrap per call.

sandbox.py               one chat's sandbox: run a command; those of all chats
files.py                 a chat's files, by the paths that commands see
workspace_taints.py      whose text these files may hold
sandbox_config.py        what all sandboxes share; puts a call together and watches it
limits.py                how much disk, memory and time; ends a call that uses more

bwrap_process.py         one running bubblewrap
long_running.py          a program that keeps running, with pipes to it
bubblewrap.py            its arguments: what a tool's process sees of the file system
seccomp.py               the system call filter
rootfs.py                the prepared / and /etc
gitdirs.py               the git directories of a repository, which commands may neither change nor make
git_index.py             the submodules that a git index names
mountinfo.py             verifies that the mounts in a repository are the requested ones

privileges.py            the user that tools act as
unprivileged_server.py   starts what runs as that user, and ends it when this program dies (its own process)
openat2.py               files beneath a directory, whatever the path says

cgroup.py                the kernel's own accounting, where systemd delegates it

observer.py              what is told for the ledger
hosts.py                 which hosts may be reached
proxy.py                 the way to them, for one call
command_socket.py        the socket of one call, on which its commands are answered outside
output_buffer.py         output, cleaned and truncated
host_report.py           the text of /host.txt
isolation_probe.py       doctor's check from inside
"""
