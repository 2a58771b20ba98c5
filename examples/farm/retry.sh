#!/bin/bash
# Repeats a task for schedulers that cannot tell exit codes apart: to them any failure is final then.
#
#   bash retry.sh ATTEMPTS PAUSE LONGEST COMMAND...
#
# Another attempt follows exit code 75 and a kill. PAUSE is the pause before the second, in seconds; it doubles up to
# LONGEST. SIGTERM to this script goes on to the command, which saves its work; no attempt follows.
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

# RQD of OpenCue names a frame's GPUs by the numbers of nvidia-smi.
[ -n "$CUE_GPU_CORES" ] && export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES="$CUE_GPU_CORES"

for ((attempt = 1; ; attempt++)); do
	run "$@"
	if { [ "$code" -ne 75 ] && [ "$code" -lt 128 ]; } || [ -n "$stopped" ] || [ "$attempt" -ge "$attempts" ]; then
		exit "$code"
	fi
	echo "attempt $attempt of $attempts ended with $code; the next begins in $pause s" >&2
	sleep "$pause" &
	wait $!
	[ -n "$stopped" ] && exit "$code"
	pause=$((2 * pause < longest ? 2 * pause : longest))
done
