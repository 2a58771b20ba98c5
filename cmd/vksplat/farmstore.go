package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"vksplat/farm/queue"
	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/farm/task"
	"vksplat/farm/worker"
	"vksplat/scene"
)

// artifact is a file of a task's results.
type artifact struct {
	Task string `json:"task"`
	store.File
}

// resultsOf finds the results of a task, or with old those that were there before they were wanted anew, and the key below which the manifest names files.
func resultsOf(root store.Root, key string, old bool) (m *store.Manifest, below string, err error) {
	if old {
		return store.Old(root, key)
	}
	m, err = store.ReadManifest(root, store.OutOf(key))
	return m, store.OutOf(key), err
}

// artifacts calls fn for the results of a job's tasks, or with old those before them.
func artifacts(ctx context.Context, q *farm, roots store.Roots, name, pattern string, old bool, fn func(root store.Root, key string, f artifact) error) error {
	document, err := q.Document(ctx, name)
	if err != nil {
		return err
	}
	job, err := spec.Parse(name, document)
	if err != nil {
		return err
	}
	plan, err := job.Plan()
	if err != nil {
		return err
	}
	root, err := roots.Open(job.Store.Outputs)
	if err != nil {
		return err
	}
	for i := range plan.Tasks {
		t := &plan.Tasks[i]
		m, below, err := resultsOf(root, task.KeyOf(job, t), old)
		if errors.Is(err, fs.ErrNotExist) || err == nil && m.Hash != plan.Hash(i) {
			continue
		}
		if err != nil {
			return store.Explain("read results", task.KeyOf(job, t), err)
		}
		for _, f := range m.Files {
			fits := pattern == "" || pattern == t.Name
			for _, name := range []string{path.Base(f.Name), f.Name, t.Name + "/" + f.Name} {
				matched, err := path.Match(pattern, name)
				if err != nil {
					return usagef("* and ? stand for parts of names", "%q is no pattern: %w", pattern, err)
				}
				fits = fits || matched
			}
			if !fits {
				continue
			}
			if err := fn(root, m.Key(below, f), artifact{t.Name, f}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *app) farmArtifactsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "artifacts ls|get",
		Short: "List or fetch the files that tasks made",
	}
	return parent(cmd, a.artifactsLsCommand(), a.artifactsGetCommand())
}

// rootsOf are the roots that flags name, or those of a job that is done on this machine.
func rootsOf(q *farm, r *rootsFlags) (store.Roots, error) {
	if q.run != nil && r.file == "" {
		r.file = q.run.roots()
	}
	return r.read()
}

func (a *app) artifactsLsCommand() *cobra.Command {
	r, asJSON, old := &rootsFlags{}, false, false
	cmd := &cobra.Command{
		Use:     "ls JOB [PATTERN]",
		Short:   "List the files that tasks of a job made",
		Long:    "List the files that tasks of a job made. PATTERN is of files, as in *.ply, or a task's name.\nExits with 1 if no file matches it.",
		Example: "  vksplat farm artifacts ls sweep\n  vksplat farm artifacts ls film '*.mp4'",
		Args:    orMore("JOB"),
	}
	return a.farmSub(cmd, &farmFlags{}, true, append([]option{truth(&asJSON, "json", "as JSON"), oldResults(&old)}, r.table()...), func(ctx context.Context, q *farm, args []string) error {
		roots, err := rootsOf(q, r)
		if err != nil {
			return err
		}
		list := []artifact{}
		err = artifacts(ctx, q, roots, args[0], second(args), old, func(_ store.Root, _ string, f artifact) error {
			list = append(list, f)
			return nil
		})
		if err != nil {
			return err
		}
		if pattern := second(args); len(list) == 0 && pattern != "" {
			return &hintedError{err: fmt.Errorf("list results: job %s has none%s", args[0], matching(pattern)), hint: "without a pattern it lists all that there is"}
		}
		if asJSON {
			return a.printJSON(list)
		}
		w := tabwriter.NewWriter(a.stdout, 0, 8, 2, ' ', 0)
		for _, f := range list {
			_, _ = fmt.Fprintf(w, "%s\t%s\t%s\n", f.Task, f.Name, bytesText(f.Size))
		}
		return w.Flush()
	})
}

func oldResults(old *bool) option {
	return truth(old, "old", "what tasks had before retry --redo, until gc")
}

func second(args []string) string { return cmp.Or(append(args[1:], "")...) }

func (a *app) artifactsGetCommand() *cobra.Command {
	r, out, old, overwrite := &rootsFlags{}, ".", false, false
	cmd := &cobra.Command{
		Use:     "get JOB [PATTERN] -o DIR",
		Short:   "Fetch the files that tasks of a job made, to DIR/TASK/FILE",
		Example: "  vksplat farm artifacts get film '*.mp4' -o videos",
		Args:    orMore("JOB"),
	}
	own := append([]option{text(&out, "output", "to the folder `DIR`").letter("o").isFolder(), oldResults(&old), overwriteOption(&overwrite, "a file of other content")}, r.table()...)
	return a.farmSub(cmd, &farmFlags{}, true, own, func(ctx context.Context, q *farm, args []string) error {
		roots, err := rootsOf(q, r)
		if err != nil {
			return err
		}
		release, err := claimFolder(out, false)
		if err != nil {
			return err
		}
		defer release()
		dir, err := os.OpenRoot(out)
		if err != nil {
			return folderError(out, err)
		}
		defer dir.Close() // its files are closed
		if !overwrite {   // before the first is fetched
			err = artifacts(ctx, q, roots, args[0], second(args), old, func(_ store.Root, _ string, f artifact) error {
				return refuseOther(dir, path.Join(f.Task, f.Name), f.File)
			})
		}
		if err != nil {
			return err
		}
		n, bytes := 0, int64(0)
		err = artifacts(ctx, q, roots, args[0], second(args), old, func(root store.Root, key string, f artifact) error {
			n, bytes = n+1, bytes+f.Size
			return fetchFile(root, key, f.File, dir, path.Join(f.Task, f.Name))
		})
		if err == nil && n == 0 {
			err = &hintedError{err: fmt.Errorf("get results: job %s has none%s", args[0], matching(second(args))), hint: "vksplat farm artifacts ls " + quoted(args[0]) + " lists what there is"}
		}
		if err != nil {
			return err
		}
		a.printf("%s, %s together, in %s\n", count(n, "file"), bytesText(bytes), out)
		return nil
	})
}

func matching(pattern string) string {
	if pattern == "" {
		return ""
	}
	return " that match " + quoted(pattern)
}

// refuseOther refuses to replace a file by one of other content.
func refuseOther(dir *os.Root, name string, want store.File) error {
	f, err := dir.Open(name)
	if err != nil {
		return nil // there is none, or fetching says what is wrong
	}
	defer f.Close() // only read
	sum := sha256.New()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil
	} else if _, err := io.Copy(sum, f); err == nil && info.Size() == want.Size && hex.EncodeToString(sum.Sum(nil)) == want.SHA256 {
		return nil
	}
	return usagef("name another folder with -o, or replace it with --overwrite", "%s is there already, and is another file", filepath.Join(dir.Name(), filepath.FromSlash(name)))
}

// fetchFile copies a file of the store, and checks it on the way. What is there by its name is replaced once it is whole.
func fetchFile(root store.Root, key string, want store.File, dir *os.Root, name string) error {
	from, err := root.Open(key)
	if err != nil {
		return store.Explain("read results", key, err)
	}
	defer from.Close() // only read
	if err := dir.MkdirAll(path.Dir(name), 0o777); err != nil {
		return folderError(dir.Name(), err)
	}
	to, err := dir.Create(fetchedPart)
	if err != nil {
		return folderError(dir.Name(), err)
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(to, sum), from)
	if err = errors.Join(err, to.Close()); err == nil && hex.EncodeToString(sum.Sum(nil)) != want.SHA256 {
		err = store.Explain("read results", key, fmt.Errorf("%s: %w: it has not the content that it was written with", key, store.ErrDamaged))
	}
	if err == nil {
		err = dir.Rename(fetchedPart, name)
	}
	if err != nil {
		_ = dir.Remove(fetchedPart) // the first error is the one to report
	}
	return err
}

// fetchedPart is the file in the folder of artifacts get that is being fetched. Nobody else fetches into that folder meanwhile.
const fetchedPart = ".vksplat-part"

func (a *app) farmFsckCommand() *cobra.Command {
	r, repair, asJSON := &rootsFlags{}, false, false
	cmd := &cobra.Command{
		Use:   "fsck",
		Short: "Check the queue against the results, or rebuild it from them",
		Long: "Check that the queue is whole, and that it and the results in the store agree. With\n" +
			"--repair what is wrong is mended; an empty queue is filled with the jobs of the store.\n" +
			"Where the store knows nothing of a job whose results are missing, it may be another folder or\n" +
			"not mounted: that is said, and nothing is done again for it.\n" +
			"Exits with 1 if something is wrong and not mended.",
		Example: "  vksplat farm fsck --roots roots.toml\n  vksplat farm fsck --roots roots.toml --repair",
		Args:    cobra.NoArgs,
	}
	own := append([]option{truth(&repair, "repair", "mend what is wrong"), truth(&asJSON, "json", "as JSON")}, r.table()...)
	return a.farmSub(cmd, &farmFlags{}, false, own, func(ctx context.Context, q *farm, _ []string) error {
		roots, err := rootsOf(q, r)
		if err != nil {
			return err
		}
		var inventory queue.Inventory // nil: the queue alone
		var stores *worker.Inventory
		var findings []queue.Finding
		if len(roots) > 0 {
			if stores, err = worker.NewInventory(roots); err != nil {
				return err
			}
			if q.run == nil { // what is done on this machine alone has its document in its own folder
				findings, err = stores.Documents(ctx, q.Queue, repair)
			}
			if err != nil {
				return err
			}
			inventory = stores
		} else {
			a.note("no root is named: only the queue itself is checked")
		}
		found, err := q.Fsck(ctx, inventory, repair)
		if err != nil {
			return err
		}
		findings = append(findings, found...)
		if jobs, err := q.List(ctx); inventory != nil && err == nil && len(jobs)+len(findings) == 0 {
			a.warn("there are no jobs, neither in the queue nor in the store: are these its folders, and are they mounted?")
		}
		return a.printFindings(findings, stores, asJSON)
	})
}

// leftOf counts the findings that are not mended, and says what to do about them.
func leftOf(findings []queue.Finding) (left int, advice string) {
	mends := false
	advice = "this is not for --repair: see that the roots are those that the results went to, that their folders are mounted, and that a farm serve runs"
	for _, f := range findings {
		if f.Repaired {
			continue
		}
		left++
		switch {
		case f.Mends:
			advice, mends = "vksplat farm fsck --repair mends what it can", true
		case worker.IsDocument(f) && !mends:
			advice = "the queue knows nothing of that job: submit it again, what has results is not done again; or remove the file"
		}
	}
	return left, advice
}

// printFindings prints what Fsck found, with the files that are damaged in stores, nil for none.
func (a *app) printFindings(findings []queue.Finding, stores *worker.Inventory, asJSON bool) error {
	for i := range findings {
		f := &findings[i]
		if stores == nil || f.What != queue.LacksResults {
			continue
		}
		if bad := stores.Damage(f.Job, f.Index); bad != nil {
			f.What += ": " + scene.ErrorText(bad)
		}
	}
	if asJSON {
		if err := a.printJSON(append([]queue.Finding{}, findings...)); err != nil {
			return err
		}
	} else {
		for _, f := range findings {
			verdict := "wrong"
			switch {
			case f.Repaired && strings.HasPrefix(f.What, queue.LacksResults):
				verdict = "queued again"
			case f.Repaired:
				verdict = "mended"
			}
			a.printf("%s: %s: %s\n", verdict, strings.TrimSpace(f.Job+" "+f.Task), f.What)
		}
	}
	if left, advice := leftOf(findings); left > 0 {
		return &hintedError{err: errors.New(leftText(left, len(findings))), hint: advice}
	}
	if !asJSON && len(findings) == 0 {
		a.printf("nothing is wrong\n")
	}
	return nil
}

// leftText says how many findings are not mended.
func leftText(left, all int) string {
	of, are := "", "are"
	if left < all {
		of = fmt.Sprintf("%d of ", left)
	}
	if left == 1 {
		are = "is"
	}
	return fmt.Sprintf("%s%s %s not mended", of, count(all, "finding"), are)
}

func (a *app) farmGcCommand() *cobra.Command {
	r, older, dryRun := &rootsFlags{}, spanFlag(30*24*time.Hour), false
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Forget old jobs, and remove what killed attempts left",
		Long: "Forget jobs in the queue that ended some time ago, and remove what attempts of these\n" +
			"jobs left in the store: half commits, outdated results, checkpoints, also those of tasks\n" +
			"that failed. Results stay.",
		Example: "  vksplat farm gc --roots roots.toml --older 30d",
		Args:    cobra.NoArgs,
	}
	own := append([]option{other(&older, "older", "jobs that ended more than `TIME` ago"), truth(&dryRun, "dry-run", "print the jobs, and stop")}, r.table()...)
	return a.farmSub(cmd, &farmFlags{}, false, own, func(ctx context.Context, q *farm, _ []string) error {
		roots, err := rootsOf(q, r)
		if err != nil {
			return err
		}
		a.warnRootless(roots)
		jobs, err := q.List(ctx)
		if err != nil {
			return err
		}
		jobs = slices.DeleteFunc(jobs, func(j queue.JobStatus) bool { return j.Ended == "" || time.Since(j.Changed) < time.Duration(older) })
		var failed error
		for _, j := range jobs {
			a.printf("job %s, %s, ended %s\n", j.Name, j.State, j.Changed.Local().Format(time.DateTime))
			if dryRun {
				continue
			}
			err := sweepJob(ctx, q, roots, j.Head)
			if err == nil {
				err = q.Delete(ctx, j.Name)
			}
			if ctx.Err() != nil {
				return err
			}
			if err != nil { // as of a root that is no more: others are forgotten all the same
				a.warn(fmt.Sprintf("job %s stays: %s", j.Name, scene.ErrorText(err)))
				failed = cmp.Or(failed, err)
			}
		}
		if failed != nil {
			return failed
		}
		if dryRun {
			a.printf("%s to forget\n", count(len(jobs), "job"))
		} else {
			a.printf("%s forgotten\n", count(len(jobs), "job"))
		}
		return nil
	})
}

func (a *app) farmDeleteCommand() *cobra.Command {
	r := &rootsFlags{}
	cmd := &cobra.Command{
		Use:   "delete JOB",
		Short: "Forget a job that has ended, so that another may have its name",
		Long: "Forget a job that has ended, and with the roots of the store what killed attempts of it left\n" +
			"there, as gc does. Results stay: a new job of the name keeps those of tasks that are the same.\n" +
			"Of a job that was canceled it first waits until its tasks have stopped.",
		Example: "  vksplat farm delete sweep --roots roots.toml",
		Args:    one("JOB"),
	}
	return a.farmSub(cmd, &farmFlags{}, true, r.table(), func(ctx context.Context, q *farm, args []string) error {
		roots, err := rootsOf(q, r)
		if err != nil {
			return err
		}
		a.warnRootless(roots)
		head, err := q.Head(ctx, args[0])
		if err != nil {
			return err
		}
		if head.Canceled && head.Ended == "" {
			a.note("its tasks save and stop: waiting for that")
			status, err := q.Wait(ctx, args[0])
			if err != nil {
				return err
			}
			head = status.Head
		}
		if head.Ended != "" { // else Delete says so
			if err := sweepJob(ctx, q, roots, head); err != nil {
				return err
			}
		}
		if err := q.Delete(ctx, args[0]); err != nil {
			return err
		}
		a.printf("job %s is forgotten; its results stay\n", args[0])
		return nil
	})
}

func (a *app) warnRootless(roots store.Roots) {
	if len(roots) == 0 {
		a.note("no root is named: the store keeps the documents of what is forgotten, and fsck --repair would submit them again")
	}
}

// sweepJob removes what is left of a job's attempts in the store. Without roots nothing is. From then on nobody can have the job run again, which would lose what it does.
func sweepJob(ctx context.Context, q *farm, roots store.Roots, j queue.Head) error {
	if len(roots) == 0 {
		return nil
	}
	document, err := q.Document(ctx, j.Name)
	if err != nil && j.Forgotten {
		return nil // this was interrupted when it had come further than here
	}
	if err != nil {
		return err
	}
	job, err := spec.Parse(j.Name, document)
	if err != nil {
		return err
	}
	if _, err := roots.Open(job.Store.Outputs); err != nil {
		return err
	}
	if err := q.Retire(ctx, j.Name); err != nil {
		return err
	}
	return worker.Sweep(roots, job)
}
