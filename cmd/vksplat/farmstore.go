package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vksplat/farm/store"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/pipeline"
)

// artifact is a file of a task's results.
type artifact struct {
	Task string `json:"task"`
	store.File
}

// storedResults are those of a job, or of several, in the store.
type storedResults struct {
	options store.Options // of root
	root    store.Root
	key     string // of the folder
}

// openResults opens the folder that farm run names at its end, or with the file of roots NAME/JOB: the folder of a job
// below the root of that name.
func openResults(where string, r *rootsFlags) (*storedResults, error) {
	roots, err := r.read()
	if err != nil {
		return nil, err
	}
	name, below, _ := strings.Cut(strings.TrimSuffix(where, "/"), "/")
	if o, named := roots[name]; named && below != "" && !output.IsFolder(where) {
		root, err := store.Open(o)
		return &storedResults{o, root, below}, err
	}
	dir := output.Absolute(where)
	if real, err := filepath.EvalSymlinks(dir); err == nil { // no key leads through a link out of its root
		dir = real
	}
	folder, job := filepath.Split(dir)
	if store.IsBucket(where) {
		folder, job = path.Split(strings.TrimSuffix(where, "/"))
	} else if !output.IsFolder(where) {
		return nil, fault.Usagef("name the folder that vksplat farm run says at its end; with --roots FILE also "+
			"ROOT/JOB", "%s: there is no such folder", where)
	}
	o := store.Options{URL: folder}
	root, err := store.Open(o)
	return &storedResults{o, root, job}, err
}

// name is how a task is called below the folder.
func (r *storedResults) name(task string) string {
	return strings.TrimPrefix(strings.TrimPrefix(task, r.key), "/")
}

// tasks lists those that have left something.
func (r *storedResults) tasks() ([]store.Task, error) {
	list, err := store.Tasks(r.root, r.key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Usagef("name the folder that vksplat farm run says at its end",
			"nothing found at %s in %s",
			r.key, r.root)
	}
	return list, store.Explain("list results", r.key, err)
}

// artifacts calls fn for the files of all tasks that fit a pattern, or with old for those that tasks had before they
// were made again.
func (r *storedResults) artifacts(pattern string, old bool, fn func(key string, f artifact) error) error {
	tasks, err := r.tasks()
	if err != nil {
		return err
	}
	for _, t := range tasks {
		var m *store.Manifest
		below := store.OutOf(t.Key)
		if old {
			m, below, err = store.Old(r.root, t.Key)
		} else {
			m, err = store.ReadManifest(r.root, below)
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return store.Explain("read results", t.Key, err)
		}
		task := r.name(t.Key)
		for _, f := range m.Files {
			fits, err := fitsFile(pattern, task, f.Name)
			if err == nil && fits {
				err = fn(m.Key(below, f), artifact{task, f})
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// fitsFile says whether a pattern is of a file, or is the name of its task; "" is of all.
func fitsFile(pattern, task, file string) (bool, error) {
	if pattern == "" || pattern == task {
		return true, nil
	}
	for _, name := range []string{path.Base(file), file, task + "/" + file} {
		if fits, err := path.Match(pattern, name); err != nil {
			return false, fault.Usagef("* and ? stand for parts of names", "%q is not a pattern: %w", pattern, err)
		} else if fits {
			return true, nil
		}
	}
	return false, nil
}

// resultsCommand makes a command that works on the results in a folder.
func resultsCommand(console *cli.Console, cmd *cobra.Command, own []option,
	work func(ctx context.Context, r *storedResults, args []string) error) *cobra.Command {
	flags := &rootsFlags{}
	table := []optionGroup{{options: append(own, flags.table()...)}}
	return newCommand(console, cmd, table, helpLayout{}, func(_ *pflag.FlagSet, args []string) error {
		ctx, stop := console.Stoppable(cli.Always("stopping"))
		defer stop()
		r, err := openResults(args[0], flags)
		if err != nil {
			return err
		}
		return work(ctx, r, args)
	})
}

// orMore makes an argument check: what, and further words.
func orMore(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return nil
		}
		return fault.Usagef("as in: vksplat farm "+cmd.Use, "%s needs one %s", cmd.Name(), what)
	}
}

func farmArtifactsCommand(console *cli.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "artifacts ls|get",
		Short: "List or fetch the files that tasks made",
	}
	return parent(cmd, artifactsLsCommand(console), artifactsGetCommand(console))
}

func artifactsLsCommand(console *cli.Console) *cobra.Command {
	asJSON, old := false, false
	cmd := &cobra.Command{
		Use:   "ls DIR [PATTERN]",
		Short: "List the files that tasks made",
		Long: "List the files that tasks made. DIR is the folder or bucket that farm run names at its end.\n" +
			"PATTERN matches names of files, as in *.ply, or a task. Exits with 1 if it matches nothing.",
		Example: "  vksplat farm artifacts ls two-gardens\n  vksplat farm artifacts ls s3://bucket/results/film " +
			"'*.mp4'",
		Args: orMore("DIR"),
	}
	return resultsCommand(console, cmd, []option{truth(&asJSON, "json", "print JSON"), oldResults(&old)},
		func(_ context.Context, r *storedResults, args []string) error {
			list, pattern := []artifact{}, second(args)
			err := r.artifacts(pattern, old, func(_ string, f artifact) error {
				list = append(list, f)
				return nil
			})
			switch {
			case err != nil:
				return err
			case len(list) == 0 && pattern != "":
				return fault.WithHint(fmt.Errorf("list results: none found%s", matching(pattern)),
					"without a pattern it lists all results")
			case asJSON:
				return console.PrintJSON(list)
			}
			w := tabwriter.NewWriter(console.Stdout, 0, 8, 2, ' ', 0)
			for _, f := range list {
				_, _ = fmt.Fprintf(w, "%s\t%s\t%s\n", f.Task, f.Name, pipeline.BytesText(f.Size))
			}
			return w.Flush()
		})
}

func oldResults(old *bool) option {
	return truth(old, "old", "results that run --redo replaced, until gc removes them")
}

func second(args []string) string { return cmp.Or(append(args[1:], "")...) }

func artifactsGetCommand(console *cli.Console) *cobra.Command {
	out, old, overwrite := ".", false, false
	cmd := &cobra.Command{
		Use:     "get DIR [PATTERN] -o TO",
		Short:   "Fetch the files that tasks made, to TO/TASK/FILE",
		Example: "  vksplat farm artifacts get s3://bucket/results/film '*.mp4' -o videos",
		Args:    orMore("DIR"),
	}
	own := []option{text(&out, "output", "write to the folder `TO`").letter("o").isFolder(), oldResults(&old),
		overwriteOption(&overwrite, "existing files with other content")}
	return resultsCommand(console, cmd, own, func(ctx context.Context, r *storedResults, args []string) error {
		release, err := output.Claim(out, false)
		if err != nil {
			return err
		}
		defer release()
		dir, err := os.OpenRoot(out)
		if err != nil {
			return output.FolderError(out, err)
		}
		defer dir.Close() // its files are closed
		if !overwrite {   // before the first is fetched
			err = r.artifacts(second(args), old, func(_ string, f artifact) error {
				return refuseOther(ctx, dir, path.Join(f.Task, f.Name), f.File)
			})
		}
		if err != nil {
			return err
		}
		n, bytes := 0, int64(0)
		err = r.artifacts(second(args), old, func(key string, f artifact) error {
			n, bytes = n+1, bytes+f.Size
			return fetchFile(ctx, r.root, key, f.File, dir, path.Join(f.Task, f.Name))
		})
		if err == nil && n == 0 {
			err = fault.WithHint(fmt.Errorf("get results: none found%s", matching(second(args))),
				"vksplat farm artifacts ls "+cli.Quoted(args[0])+" lists what there is")
		}
		if err != nil {
			return err
		}
		console.Printf("%s, %s together, in %s\n", cli.Count(n, "file"), pipeline.BytesText(bytes), out)
		return nil
	})
}

func matching(pattern string) string {
	if pattern == "" {
		return ""
	}
	return " that match " + cli.Quoted(pattern)
}

// refuseOther refuses to replace a file by one of other content.
func refuseOther(ctx context.Context, dir *os.Root, name string, want store.File) error {
	if have, err := store.ReadLocal(ctx, dir, name, math.MaxInt64, io.Discard); err != nil ||
		have.SHA256 == want.SHA256 {
		return nil // where there is none, or no file, fetching says what is wrong
	}
	return fault.Usagef("name another folder with -o, or replace it with --overwrite",
		"%s already exists with other content", filepath.Join(dir.Name(), filepath.FromSlash(name)))
}

// fetchFile copies a file of the store, and checks it on the way. What is there by its name is replaced once it is
// whole.
func fetchFile(ctx context.Context, root store.Root, key string, want store.File, dir *os.Root, name string) error {
	if err := dir.MkdirAll(path.Dir(name), 0o777); err != nil {
		return output.FolderError(dir.Name(), err)
	}
	to, err := dir.Create(fetchedPart)
	if err != nil {
		return output.FolderError(dir.Name(), err)
	}
	err = store.CopyFile(ctx, root, key, want, to)
	if err = store.Explain("read results", key, errors.Join(err, to.Close())); ctx.Err() != nil {
		err = fault.ErrInterrupted
	}
	if err == nil {
		err = dir.Rename(fetchedPart, name)
	}
	if err != nil {
		_ = dir.Remove(fetchedPart) // the first error is the one to report
	}
	return err
}

// fetchedPart is the file in the folder of artifacts get that is being fetched. Nobody else fetches into that folder
// meanwhile.
const fetchedPart = ".vksplat-part"

// finding is a finding of fsck.
type finding struct {
	Task     string `json:"task"`
	What     string `json:"what"`
	Repaired bool   `json:"repaired"`
}

func farmFsckCommand(console *cli.Console) *cobra.Command {
	repair, asJSON := false, false
	cmd := &cobra.Command{
		Use:   "fsck DIR",
		Short: "Check all results for damage",
		Long: "Check every result in DIR, the folder or bucket that farm run names at its end, against its\n" +
			"manifest. --repair moves damaged results away; farm run then makes them again. Exits with 1\n" +
			"if something is damaged and not repaired.",
		Example: "  vksplat farm fsck two-gardens\n  vksplat farm fsck two-gardens --repair",
		Args:    one("DIR"),
	}
	own := []option{truth(&repair, "repair", "move damaged results out of the way"),
		truth(&asJSON, "json", "print JSON")}
	return resultsCommand(console, cmd, own, func(ctx context.Context, r *storedResults, _ []string) error {
		tasks, err := r.tasks()
		if err != nil {
			return err
		}
		findings, whole := []finding{}, 0
		for _, t := range tasks {
			if !t.Results {
				continue
			}
			switch err := store.Check(ctx, r.root, t.Key, repair); {
			case ctx.Err() != nil:
				return fault.ErrInterrupted
			case errors.Is(err, store.ErrDamaged):
				findings = append(findings, finding{r.name(t.Key), err.Error(), repair})
			case err != nil:
				return store.Explain("read results", t.Key, err)
			default:
				whole++
			}
		}
		_, odd, err := r.root.List(r.key)
		if err != nil {
			return store.Explain("list results", r.key, err)
		}
		for _, key := range odd {
			console.Note(r.name(key) + " is not read: not a regular file or folder, or a symlink that leaves the root")
		}
		return printFindings(console, findings, whole, repair, asJSON)
	})
}

// printFindings prints what fsck found, and the number of intact tasks.
func printFindings(console *cli.Console, findings []finding, whole int, repair, asJSON bool) error {
	if asJSON {
		if err := console.PrintJSON(findings); err != nil {
			return err
		}
	} else {
		for _, f := range findings {
			verdict := "damaged"
			if f.Repaired {
				verdict = "moved out of the way"
			}
			console.Printf("%s: %s: %s\n", verdict, f.Task, f.What)
		}
		console.Printf("%s with whole results\n", cli.Count(whole, "task"))
	}
	if len(findings) == 0 || repair {
		return nil
	}
	return fault.WithHint(fmt.Errorf("check results: the results of %s are damaged", cli.Count(len(findings), "task")),
		"--repair moves them out of the way, and vksplat farm run makes them again")
}

func farmGcCommand(console *cli.Console) *cobra.Command {
	older, dryRun := spanFlag(30*24*time.Hour), false
	cmd := &cobra.Command{
		Use:   "gc DIR",
		Short: "Remove leftover files of tasks",
		Long: "Remove leftover files of tasks in DIR: unfinished commits, damaged and replaced\n" +
			"results, and checkpoints (also of unfinished tasks), if nothing was written for some time. Results\n" +
			"and logs are kept, and so are folders with files that vksplat did not write.",
		Example: "  vksplat farm gc two-gardens --older 30d",
		Args:    one("DIR"),
	}
	own := []option{other(&older, "older", "only tasks that wrote nothing for `TIME`"), truth(&dryRun,
		"dry-run", "print the tasks and stop")}
	return resultsCommand(console, cmd, own, func(ctx context.Context, r *storedResults, _ []string) error {
		tasks, err := r.tasks()
		if err != nil {
			return err
		}
		n := 0
		for _, t := range tasks {
			if ctx.Err() != nil {
				return fault.ErrInterrupted
			}
			if t.Changed.IsZero() || time.Since(t.Changed) < time.Duration(older) {
				continue
			}
			n++
			console.Printf("%s: last written %s\n", r.name(t.Key), t.Changed.Local().Format(time.DateTime))
			if dryRun {
				continue
			}
			kept, err := store.Sweep(r.root, t.Key)
			if err := errors.Join(err, store.Forget(r.root, t.Key, store.AllAttempts)); err != nil {
				return store.Explain("remove leftovers", t.Key, err)
			}
			for _, place := range kept {
				console.Printf("kept: %s: %v; move your own files away, or remove the folder\n", r.name(place),
					store.ErrForeign)
			}
		}
		verb := "cleared"
		if dryRun {
			verb = "to clear"
		}
		console.Printf("%s %s\n", cli.Count(n, "task"), verb)
		return nil
	})
}

// spanFlag is a length of time, also in days.
type spanFlag time.Duration

func (f *spanFlag) Type() string { return "TIME" }

func (f *spanFlag) String() string {
	if *f == 0 {
		return ""
	}
	if day := 24 * time.Hour; time.Duration(*f)%day == 0 {
		return fmt.Sprintf("%dd", time.Duration(*f)/day)
	}
	return time.Duration(*f).String()
}

// maxDays bounds a spanFlag.
const maxDays = 36500

// Set parses 30s, 10m, 6h or 30d.
func (f *spanFlag) Set(s string) error {
	var days int
	var rest string
	if n, _ := fmt.Sscanf(s, "%d%s", &days, &rest); n == 2 && rest == "d" && days >= 0 && days <= maxDays {
		*f = spanFlag(time.Duration(days) * 24 * time.Hour)
		return nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return fault.Usagef("as in 30s, 10m, 6h or 30d", "%q is not a duration", s)
	}
	*f = spanFlag(d)
	return nil
}
