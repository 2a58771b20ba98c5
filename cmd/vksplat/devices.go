package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vksplat/internal/cli"
	"vksplat/pipeline"
)

func devicesCommand(console *cli.Console) *cobra.Command {
	asJSON, choice := false, ""
	cmd := &cobra.Command{
		Use:   "devices [--json]",
		Short: "List the Vulkan devices of this machine",
		Long: "List the Vulkan devices of this machine. --device takes an index, UUID or PCI address; UUID and\n" +
			"address do not change when other devices are added or removed.",
		Args: none,
	}
	table := []optionGroup{{options: []option{
		truth(&asJSON, "json", "print all device properties as JSON"),
		text(&choice, "device", "only the device with this `ID`: index, UUID or PCI address (default: all)"),
	}}}
	return newCommand(console, cmd, table, helpLayout{}, func(*pflag.FlagSet, []string) error {
		list, err := listDevices(choice)
		if err != nil {
			return err
		}
		if asJSON {
			return console.PrintJSON(list)
		}
		return printDevices(console, list)
	})
}

// listDevices lists all devices, or the one that is chosen.
func listDevices(choice string) ([]pipeline.DeviceSummary, error) {
	if choice == "" {
		return pipeline.ListDevices()
	}
	list, _, err := pipeline.FindDevices(choice)
	return list, err
}

// printDevices prints a table, and below it what unusable devices lack.
func printDevices(console *cli.Console, list []pipeline.DeviceSummary) error {
	w := tabwriter.NewWriter(console.Stdout, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "INDEX\tNAME\tTYPE\tMEMORY\tVULKAN\tDRIVER\tUUID\tPCI")
	for _, d := range list {
		_, _ = fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", d.Index, d.Name, d.Type,
			pipeline.BytesText(d.MemoryBytes), d.API, d.Driver, d.UUID, orDash(d.PCI))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print devices: %w", err)
	}
	for _, d := range list {
		if !d.Usable {
			console.Printf("device %d is not usable: it lacks %s\n", d.Index, strings.Join(d.Missing, ", "))
		}
	}
	return nil
}
