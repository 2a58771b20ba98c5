package export

// runText is bash's function run, which a script calls once or more: it runs a command and leaves its exit code in
// code. SIGTERM to the script goes on to the command, which saves its work and ends with 75; stopped says that it came.
const runText = `# run COMMAND... runs a command, passes SIGTERM on to it, and leaves its exit code in code.
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
}`
