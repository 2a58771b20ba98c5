package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vksplat/farm/client"
	"vksplat/farm/pass"
	"vksplat/farm/spec"
	"vksplat/farm/worker"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/internal/run/train"
)

// farmWorkerOptions is everything that worker is asked for.
type farmWorkerOptions struct {
	devices, pools, work string
	others               int
	cache                int64 // bytes
	farm                 farmFlags
	roots                rootsFlags
}

func (o *farmWorkerOptions) table() []option {
	list := []option{
		text(&o.devices, "devices",
			"use these devices: all, none, or a `LIST` as in 0,1; indices, UUIDs or PCI addresses").
			oneOf(train.DevicesAll, devicesNone),
		integer(&o.others, "others", "run up to `N` tasks that need no device at a time; 0: none"),
		text(&o.work, "work",
			"keep inputs and unfinished work in `DIR`, a local disk (default: state folder)").isFolder(),
		other((*sizeFlag)(&o.cache), "cache-size",
			"keep at most `BYTES` of inputs in the work folder; the least recently used go first"),
	}
	list = append(list, o.roots.table()...)
	list = append(list, o.farm.table()...)
	return append(list, text(&o.pools, "pools", "with --temporal: take tasks of the pools `LIST` (default: any)"))
}

func farmWorkerCommand(console *cli.Console) *cobra.Command {
	o := &farmWorkerOptions{devices: train.DevicesAll, others: 1, cache: defaultCache}
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Run the farm's tasks on this machine",
		Long: "Run tasks of the farm that this machine has joined, one per device at a time. Ctrl-C or\n" +
			"SIGTERM makes tasks save and hands them back for other workers to continue.",
		Example: "  vksplat farm worker --roots roots.toml\n" +
			"  vksplat farm worker --roots roots.toml --devices 0,1 --others 2",
		Args: none,
	}
	return newCommand(console, cmd, []optionGroup{{options: o.table()}}, helpLayout{},
		func(*pflag.FlagSet, []string) error { return farmWorker(console, o) })
}

func farmWorker(console *cli.Console, o *farmWorkerOptions) error {
	if o.farm.temporal == "" && o.pools != "" {
		return fault.Usagef("leave it out: the pass determines the pools", "--pools goes with --temporal")
	}
	w := worker.Options{Others: o.others, CacheMax: o.cache, Lacks: lackingKinds(), Version: cli.Version(),
		Note: func(text string) { console.Note(text) }}
	var err error
	if w.Roots, err = o.roots.read(); err != nil {
		return err
	}
	if len(w.Roots) == 0 {
		return fault.Usagef("as in: --root inputs=/mnt/farm/inputs --root outputs=/mnt/farm/outputs, or with "+
			"--roots FILE",
			"worker needs the roots of inputs and outputs")
	}
	if w.Devices, err = chosenDevices(console, o.devices); err != nil {
		return err
	}
	if w.Program, err = os.Executable(); err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	if w.Locks, err = stateFolder("locks"); err != nil {
		return err
	}
	own, err := stateFolder("worker")
	if err != nil {
		return err
	}
	w.Work = output.Absolute(cmp.Or(o.work, own))
	ctx, stop := console.Stoppable(cli.Always("stopping as soon as the tasks have saved"))
	defer stop()
	farm, p, err := o.join(ctx, console)
	if err != nil {
		return err
	}
	defer farm.Close()
	w.Conn = farm.Conn
	w.Pools = []string{spec.DefaultPool}
	switch {
	case p != nil && p.Role != pass.Worker:
		return &fault.Error{Op: "use pass", Err: fmt.Errorf("this machine's pass is of role %s", p.Role),
			Kind: fault.ErrSetup,
			Hint: "join with a token of role worker, into another folder with --pass"}
	case p != nil:
		w.Pools = p.Pools
		go renews(ctx, p)
	case o.pools != "":
		w.Pools = strings.Split(o.pools, ",")
	}
	console.Printf("worker at %s: pools %s; %s\n", farm.Address, strings.Join(w.Pools, ", "), placesText(&w))
	if err := worker.Run(ctx, w); err != nil {
		return err
	}
	console.Printf("stopped; other workers continue\n")
	return nil
}

// join connects to the farm. It waits for one that does not respond: after a power cut machines start in any order.
func (o *farmWorkerOptions) join(ctx context.Context, console *cli.Console) (*client.Farm, *pass.Pass, error) {
	for said := false; ; {
		farm, p, err := o.farm.dial(ctx)
		switch {
		case err == nil:
			return farm, p, nil
		case ctx.Err() != nil:
			return nil, nil, fault.ErrInterrupted
		case !errors.Is(err, fault.ErrTryAgain):
			return nil, nil, err
		case !said:
			console.Note("waiting for the farm: " + err.Error())
			said = true
		}
	}
}

// placesText says what a worker has.
func placesText(w *worker.Options) string {
	var names []string
	for i := range w.Devices {
		names = append(names, w.Devices[i].Name)
	}
	if w.Others > 0 {
		names = append(names, cli.Count(w.Others, "task")+" without a device")
	}
	for _, k := range spec.Kinds() {
		if w.Lacks[k] != nil {
			names = append(names, "no "+k.Name)
		}
	}
	return strings.Join(slices.Compact(names), ", ")
}

// renews renews the pass before it ends.
func renews(ctx context.Context, p *pass.Pass) {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := p.RenewIfDue(ctx); err != nil && !errors.Is(err, context.Canceled) {
				continue // the next hour tries again, and the pass is good for a third of its life
			}
		}
	}
}
