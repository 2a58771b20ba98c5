//go:build unix

package export

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
)

// standIn is a kubectl whose cluster is a folder: a file for each Job holds its condition. A Job that is created
// completes unless it is named in fails.
const standIn = `#!/bin/bash
cd "$CLUSTER" || exit
case $1 in
apply) ;;
get)
	[ -e "$3" ] && cat "$3" && exit
	[[ " $* " == *" --ignore-not-found "* ]] ;;
create)
	job=$(sed -n 's/^    "name": "\(.*\)"$/\1/p' "$EXPORT/$3")
	[ -e "$job" ] && exit 1
	echo "$job" >>created
	grep -qx "$job" fails && echo -n Failed >"$job" || echo -n Complete >"$job" ;;
delete) rm "$3" ;;
*) exit 2 ;;
esac
`

// TestKubernetesAgain submits a job of which a stage fails, and again when what was wrong is put right: only the stages
// without results run.
func TestKubernetesAgain(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	j, p := mixed(t)
	files := must.Get(Kubernetes(j, p, writers[1].o))(t)
	dir, cluster, bin := written(t, files), t.TempDir(), t.TempDir()
	write := func(name, text string) {
		must.Do(t, os.WriteFile(name, []byte(text), 0o777))
	}
	write(filepath.Join(bin, "kubectl"), standIn)
	write(filepath.Join(bin, "sleep"), "#!/bin/sh\nexec /bin/sleep 0.02\n")
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("CLUSTER", cluster)
	t.Setenv("EXPORT", dir)
	submit := func(fails string) (created string, err error) {
		write(filepath.Join(cluster, "fails"), fails)
		write(filepath.Join(cluster, "created"), "")
		said, err := exec.Command(bash, filepath.Join(dir, SubmitName)).CombinedOutput()
		t.Logf("%s", said)
		list, _ := os.ReadFile(filepath.Join(cluster, "created")) // written above
		return string(list), err
	}
	partition := label(j) + "-02-partition\n"
	if created, err := submit(partition); err == nil || strings.Count(created, "\n") != 7 ||
		!strings.Contains(created, partition) || strings.Contains(created, "-06-block") {
		t.Errorf("with a stage that fails: %v, created\n%s", err, created)
	}
	want := partition + label(j) + "-06-block\n" + label(j) + "-08-merge\n"
	if created, err := submit(""); err != nil || created != want {
		t.Errorf("put right: %v, created\n%s\nwant\n%s", err, created, want)
	}
	if created, err := submit(""); err != nil || created != "" {
		t.Errorf("once more: %v, created\n%s", err, created)
	}
}
