"""Reading and writing what is not the chat's."""

from functools import partial

from bench.attacks.attack import shell

_read = partial(shell, "reading outside")
_write = partial(shell, "writing outside")

ATTACKS = (
    _read("a file by its path", "cat {outside}/secret.txt"),
    _read("the configuration with the token", "cat {state}/config.toml"),
    _read("another chat's files", "cat {other}/notes.txt"),
    _read("another chat by ..", "cat ../../other/work/notes.txt"),
    _read("by searching for it", "find /tmp /var /root /home /srv -maxdepth 9 -name secret.txt -exec cat {} + 2>/dev/null"),
    _read("through /proc/self/root", "cat /proc/self/root{outside}/secret.txt"),
    _read("through /proc/1/root", "cat /proc/1/root{outside}/secret.txt"),
    _read("through another process's root", "cat /proc/{victim}/root{outside}/secret.txt"),
    _read("through a working directory in /proc", "cd /proc/1/cwd && cat .{outside}/secret.txt"),
    _read("through a symlink", "ln -sf {outside}/secret.txt l; cat l"),
    _read("through a hard link", "ln {outside}/secret.txt h; cat h; rm -f h"),
    _read("by the dynamic loader", "/lib64/ld-linux-x86-64.so.2 /bin/cat {outside}/secret.txt || /lib/ld-linux-aarch64.so.1 /bin/cat {outside}/secret.txt"),
    _read("by copying the directory", "cp -r {outside} copy; cat copy/secret.txt; rm -rf copy"),
    _read("by tar from /", "tar -cf - {outside} | tr -d '\\0'"),
    _read("from a descriptor left open", "for f in /proc/self/fd/*; do case $(readlink $f) in */secret.txt) cat $f;; esac; done"),
    _read("by /dev/fd", "for n in $(seq 3 60); do cat <&$n; done 2>/dev/null"),
    _read("the host's password hashes", "grep -q '^root:' /etc/shadow && echo PWNED"),
    _read("the host's own /etc", "[ -e /etc/fstab ] || [ -e /etc/cron.d ] && echo PWNED"),
    _read("home directories", "[ -d /root ] || [ -d /home ] && echo PWNED"),
    _read("logs", "ls /var/log/* && echo PWNED"),
    _read("/sys", "ls /sys/class/* && echo PWNED"),
    _read("/run and its sockets", "find /run -type s | grep -q . && echo PWNED"),
    _read("disks", "ls /dev/[sv]d* /dev/nvme* && echo PWNED"),
    _read("kernel memory", "[ -e /dev/mem ] || [ -e /dev/kmsg ] && echo PWNED"),
    _read("the graphics card's devices or a stand-in", "[ -e /dev/nvidia0 ] || [ -e /dev/dri ] || [ -e /dev/loop-control ] || [ -e /dev/fuse ] && echo PWNED"),
    _read("mounted paths", "grep -q '{state}/run' /proc/self/mountinfo || [ -r {state} ] && echo PWNED"),
    _write("a new file", "echo x > {outside}/new.txt"),
    _write("over a file", "echo x > {outside}/canary.txt"),
    _write("by deleting", "rm -f {outside}/canary.txt"),
    _write("through a symlinked directory", "ln -sfn {outside} d; echo x > d/new.txt; rm -f d"),
    _write("through /proc/1/root", "echo x > /proc/1/root{outside}/new.txt"),
    _write("in another chat", "echo x >> {other}/notes.txt"),
    _write("in a read-only repository", "for r in /repos/site {repo}; do echo x > $r/new.html; done"),
    _write("in the .git of a read-only repository", "for r in /repos/site {repo}; do echo x > $r/.git/hooks/pre-commit; done"),
    _write("a hook in a repository that may be written to", "for r in /repos/app {project}; do echo 'touch {outside}/new.txt' > $r/.git/hooks/post-checkout; done"),
    _write("settings of a repository that may be written to", "for r in /repos/app {project}; do git -C $r config core.fsmonitor 'touch {outside}/new.txt;'; done"),
    _write("another .git in a repository that may be written to", "for r in /repos/app {project}; do cd $r && mv .git old && git init -q; done"),
    _write("a .git made writable again", "mount -o remount,rw,bind /repos/app/.git; umount /repos/app/.git; for r in /repos/app {project}; do echo x > $r/.git/info/attributes; done"),
    _write("by making a read-only mount writable", "mount -o remount,rw,bind /repos/site; for r in /repos/site {repo}; do echo x > $r/new.html; done"),
    _write("in /usr", ": > /usr/local/bin/voltaire-attack && rm /usr/local/bin/voltaire-attack && echo PWNED"),
    _write("in /etc", ": > /etc/voltaire-attack && rm /etc/voltaire-attack && echo PWNED"),
    _write("in /", ": > /voltaire-attack && rm /voltaire-attack && echo PWNED"),
    _write("in /dev", ": > /dev/voltaire-attack && rm /dev/voltaire-attack && echo PWNED"),
    _write("in the service's own directories", "mkdir /run/voltaire-attack && rmdir /run/voltaire-attack && echo PWNED"),
    _write("over the host report", "[ -e /host.txt ] && echo x >> /host.txt && echo PWNED"),
    _write("kernel settings", "[ -w /proc/sys/kernel/core_pattern ] || [ -w /proc/sysrq-trigger ] && echo PWNED"),
)  # fmt: skip
