#!/bin/bash
# The command of every frame. RQD names a frame's GPUs in CUE_GPU_CORES, by the numbers of nvidia-smi.
[ -n "$CUE_GPU_CORES" ] && export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES="$CUE_GPU_CORES"
# Usage: bash THIS ATTEMPTS PAUSE LONGEST COMMAND...
attempts=$1 pause=$2 longest=$3
shift 3
# run COMMAND... runs a command, passes SIGTERM on to it, and leaves its exit code in code.
stopped= asked= child= code=
trap 'stopped=1 asked=1; [ -n "$child" ] && kill -TERM "$child" 2>/dev/null' TERM
run() {
	local again
	"$@" &
	child=$!
	[ -n "$stopped" ] && kill -TERM "$child"
	wait "$child"
	code=$?
	while [ -n "$asked" ]; do # the signal interrupted wait
		asked=
		wait "$child"
		again=$?
		[ "$again" -ne 127 ] && code=$again
	done
}

for ((attempt = 1; ; attempt++)); do
	run "$@"
	# 75: another attempt may succeed; 128 and above: it was killed.
	if { [ "$code" -ne 75 ] && [ "$code" -lt 128 ]; } || [ -n "$stopped" ] || [ "$attempt" -ge "$attempts" ]; then
		exit "$code"
	fi
	echo "attempt $attempt of $attempts ended with $code; the next begins in $pause s" >&2
	sleep "$pause" &
	wait $!
	[ -n "$stopped" ] && exit "$code"
	pause=$((2 * pause < longest ? 2 * pause : longest))
done
