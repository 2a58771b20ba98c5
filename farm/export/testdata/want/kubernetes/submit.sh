#!/bin/bash
# Creates job gr-e-reboot-x-y-5fb540a2 stage by stage and waits for its end. It can be stopped and started again: stages that are there
# already stay, except those that failed, which run again. What follows the name of this script goes to every kubectl,
# as in --namespace=lab.
cd "$(dirname "$0")" || exit
kubectl=(kubectl "$@")
"${kubectl[@]}" apply -f 00-document.json || exit

# conditions JOB prints those of a Job that hold, nothing if there is no such Job.
conditions() {
	"${kubectl[@]}" get job "$1" --ignore-not-found -o 'jsonpath={.status.conditions[?(@.status=="True")].type}'
}

# Before anything waits: a Job that failed earlier says nothing about this run. Its pods end before new ones begin.
for job in gr-e-reboot-x-y-5fb540a2-01-train \
	gr-e-reboot-x-y-5fb540a2-02-partition \
	gr-e-reboot-x-y-5fb540a2-03-render \
	gr-e-reboot-x-y-5fb540a2-04-eval \
	gr-e-reboot-x-y-5fb540a2-05-convert \
	gr-e-reboot-x-y-5fb540a2-06-block \
	gr-e-reboot-x-y-5fb540a2-07-render \
	gr-e-reboot-x-y-5fb540a2-08-merge \
	gr-e-reboot-x-y-5fb540a2-09-encode
do
	how=$(conditions "$job") || exit
	case " $how " in
	*" Failed "*) "${kubectl[@]}" delete job "$job" --cascade=foreground || exit ;;
	esac
done

# ended JOB waits for the end of a Job, and fails if it did.
ended() {
	while :; do
		[ -e "$left_out/$1" ] && return 1
		case " $(conditions "$1") " in
		*" Complete "*) return 0 ;;
		*" Failed "*) return 1 ;;
		esac
		sleep 10
	done
}

# stage FILE JOB NEEDS... creates a Job when those that it needs are complete, and waits for its end.
stage() {
	local file=$1 job=$2 need
	shift 2
	for need in "$@"; do
		ended "$need" || { echo "$job is left out: $need is not complete" >&2; : >"$left_out/$job"; return 1; }
	done
	"${kubectl[@]}" get job "$job" >/dev/null 2>&1 || "${kubectl[@]}" create -f "$file" ||
		{ : >"$left_out/$job"; return 1; }
	ended "$job" || { echo "$job failed" >&2; return 1; }
}

left_out=$(mktemp -d) || exit
trap 'rm -r "$left_out"' EXIT
stages=()
stage 01-train.json gr-e-reboot-x-y-5fb540a2-01-train &
stages+=($!)
stage 02-partition.json gr-e-reboot-x-y-5fb540a2-02-partition &
stages+=($!)
stage 03-render.json gr-e-reboot-x-y-5fb540a2-03-render gr-e-reboot-x-y-5fb540a2-01-train &
stages+=($!)
stage 04-eval.json gr-e-reboot-x-y-5fb540a2-04-eval gr-e-reboot-x-y-5fb540a2-01-train &
stages+=($!)
stage 05-convert.json gr-e-reboot-x-y-5fb540a2-05-convert gr-e-reboot-x-y-5fb540a2-01-train &
stages+=($!)
stage 06-block.json gr-e-reboot-x-y-5fb540a2-06-block gr-e-reboot-x-y-5fb540a2-02-partition &
stages+=($!)
stage 07-render.json gr-e-reboot-x-y-5fb540a2-07-render gr-e-reboot-x-y-5fb540a2-01-train gr-e-reboot-x-y-5fb540a2-03-render &
stages+=($!)
stage 08-merge.json gr-e-reboot-x-y-5fb540a2-08-merge gr-e-reboot-x-y-5fb540a2-02-partition gr-e-reboot-x-y-5fb540a2-06-block &
stages+=($!)
stage 09-encode.json gr-e-reboot-x-y-5fb540a2-09-encode gr-e-reboot-x-y-5fb540a2-03-render gr-e-reboot-x-y-5fb540a2-07-render &
stages+=($!)
code=0
for stage in "${stages[@]}"; do
	wait "$stage" || code=1
done
exit $code
