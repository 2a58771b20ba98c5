package main

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/pipeline"
	"vksplat/pipeline/check"
)

func doctorCommand(console *cli.Console) *cobra.Command {
	var o pipeline.DeviceOptions
	cmd := &cobra.Command{
		Use:   "doctor [--device ID]",
		Short: "Check the Vulkan loader, the drivers and every kernel on a device",
		Long: "Check the Vulkan loader, the drivers, and the device's features, limits and memory, then\n" +
			"compare every kernel on the device with the same kernel on the CPU.",
		Args: none,
		RunE: runs(console, func([]string) error {
			for _, note := range nvidiaNotes(os.DirFS("/"), os.Getenv) {
				console.Printf("machine  %s\n", note)
			}
			err := check.Doctor(console.Stdout, (*deviceFlag)(&o.Select).String())
			if errors.Is(err, check.ErrKernels) {
				return fault.WithHint(err, "models from this device are not to be trusted: try a newer driver, and "+
					"report the lines marked FAIL")
			}
			return err
		}),
	}
	table := pickOptions([]optionGroup{{options: deviceOptions(&o)}}, "device")
	addFlags(console, cmd, table, helpLayout{})
	return cmd
}
