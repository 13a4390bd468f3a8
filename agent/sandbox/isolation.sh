# What a command in the sandbox sees, as NAME=VALUE lines.
echo uid=$(id -u)
echo interfaces=$(tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' ' | tr '\n' ' ')
echo privileges=$(grep -E '^NoNewPrivs' /proc/self/status | cut -f2)
echo filter=$(grep -E '^Seccomp:' /proc/self/status | cut -f2)
echo environment=$(wc -c </proc/1/environ)
echo capabilities=$(grep -E '^CapBnd' /proc/self/status | cut -f2 | tr -d 0)
(unshare -Ur true) 2>/dev/null && echo namespaces=open || echo namespaces=closed
(: >/voltaire-probe) 2>/dev/null && echo root=writable || echo root=closed
(: >/workspace/.voltaire-probe) 2>/dev/null && echo workspace=writable || echo workspace=closed
rm -f /workspace/.voltaire-probe
# /home/user is a link to /workspace.
ls -d /home/* /root /var /sys /opt /srv /boot /mnt /media 2>/dev/null | grep -vx /home/user | tr '\n' ' ' | sed 's/^/visible=/'
