#!/usr/bin/env bash
# sample.sh LABEL COMMAND...: runs a command and samples, every second, the RAM of its process and the memory of GPU
# number GPU (default 0) beyond what was taken before. Prints the peaks; LABEL.samples gets seconds, RSS kB, anonymous
# kB, peak kB, GPU MiB.
set -uo pipefail
label=$1
shift
gpu() { nvidia-smi -i "${GPU:-0}" --query-gpu=memory.used --format=csv,noheader,nounits 2>/dev/null | head -1; }
before=$(gpu)
before=${before:-0}
"$@" &
pid=$!
begin=$(date +%s)
: >"$label.samples"
while kill -0 $pid 2>/dev/null; do
	ram=$(awk '/^VmRSS/{r=$2} /^RssAnon/{a=$2} /^VmHWM/{h=$2} END{print r+0, a+0, h+0}' /proc/$pid/status 2>/dev/null)
	now=$(gpu)
	echo "$(($(date +%s) - begin)) ${ram:-0 0 0} $((${now:-$before} - before))" >>"$label.samples"
	sleep 1
done
wait $pid
rc=$?
awk -v l="$label" -v rc=$rc '
	{ if ($2 > r) r = $2; if ($3 > a) a = $3; if ($4 > h) h = $4; if ($5 > g) g = $5 }
	END {
		printf "%s: exit %d, RAM in samples %.0f MB (anonymous %.0f MB), ", l, rc, r * 1.024e-3, a * 1.024e-3
		printf "at its peak %.0f MB, GPU %.0f MB with the driver'"'"'s context\n", h * 1.024e-3, g * 1.048576
	}' "$label.samples"
exit $rc
