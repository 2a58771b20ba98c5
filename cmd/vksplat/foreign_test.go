package main

import (
	"bytes"
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/evaluate"
	"vksplat/internal/run/render"
)

// pasted are command lines of other trainers, as their documents print them or with the flags that their sources list,
// behind "vksplat train", and what they mean here.
var pasted = []struct{ name, line, want string }{
	{"INRIA", "-s scene -m out --eval", "scene --preset 3dgs -m out --eval"},
	{"INRIA, with its program", "python train.py -s scene -m out", "scene --preset 3dgs -m out"},
	{"INRIA, full_eval.py",
		"-s data/bicycle -i images_4 -m eval/bicycle --disable_viewer --quiet --eval --test_iterations -1",
		"data/bicycle --preset 3dgs -i images_4 -m eval/bicycle --progress none --eval"},
	{"INRIA, lists", "--source_path scene --model_path out --iterations 30000 --test_iterations 7000 30000 " +
		"--save_iterations 7000 30000 --checkpoint_iterations 15000 -w --data_device cpu --resolution -1",
		"scene --preset 3dgs --model_path out --iterations 30000 --test_iterations 7000,30000 --save_iterations " +
			"7000,30000 " +
			"--checkpoint_iterations 15000 --background white --resolution auto"},
	{"INRIA, exposure", "-s scene -m out --exposure_lr_init 0.001 --train_test_exp --antialiasing --feature_lr 0.0025",
		"scene --preset 3dgs -m out --exposure --exposure --antialiasing --lr-sh0 0.0025 --lr-shn 0.000125"},
	{"INRIA, all of the optimisation", "-s scene -m out --sh_degree 3 --position_lr_init 0.00016 --opacity_lr 0.025 " +
		"--scaling_lr 0.005 --rotation_lr 0.001 --percent_dense 0.01 --lambda_dssim 0.2 --densification_interval 100 " +
		"--opacity_reset_interval 3000 --densify_from_iter 500 --densify_until_iter 15000 " +
		"--densify_grad_threshold 0.0002 --random_background --optimizer_type default --position_lr_delay_mult 1",
		"scene --preset 3dgs -m out --sh_degree 3 --position_lr_init 0.00016 --opacity_lr 0.025 --scaling_lr 0.005 " +
			"--rotation_lr 0.001 --percent_dense 0.01 --lambda_dssim 0.2 --densification_interval 100 " +
			"--opacity_reset_interval 3000 --densify_from_iter 500 --densify_until_iter 15000 " +
			"--densify_grad_threshold 0.0002 --random_background"},
	{"gsplat, default", "examples/simple_trainer.py default --eval_steps -1 --disable_viewer --data_factor 4 " +
		"--render_traj_path ellipse --data_dir data/360_v2/garden --result_dir out",
		"data/360_v2/garden --preset 3dgs --data_factor 4 --eval --result_dir out"},
	{"gsplat, mcmc", "mcmc --data_dir data/garden --data_factor 4 --result_dir out --strategy.cap-max 1000000 " +
		"--steps_scaler 0.25 --disable_viewer --save_ply --ply_steps 7000 30000 --normalize_world_space False",
		"data/garden --preset mcmc --eval --data_factor 4 --result_dir out --max-splats 1000000 --steps_scaler 0.25 " +
			"--save-at 7000,30000"},
	{"gsplat, strategy", "default --data_dir d --result_dir out --strategy.absgrad --strategy.grow-grad2d 0.0008 " +
		"--strategy.revised-opacity --init_type sfm --packed --no-normalize-world-space --tb_every 100 --shN_lr 1e-4 " +
		"--pose_opt",
		"d --preset 3dgs --eval --result_dir out --absgrad --grow-grad2d 0.0008 --revised-opacity --init_type points " +
			"--tb_every 100 --lr-shn 1e-4 --pose_opt"},
	{"gsplat, what is not here", "default --data_dir d --result_dir out --pose_opt_lr 1e-5 --app_opt --depth_loss " +
		"--batch_size 4",
		"refused: flag --pose_opt_lr 1e-5: poses have other learning rates: --refine-cameras, --lr-poses\n" +
			"flag --app_opt: there are no embeddings of photos; " + exposure + "\n" +
			"flag --batch_size 4: one photo is drawn in each step, on each device: --devices"},
	{"gsplat, as in its README", "CUDA_VISIBLE_DEVICES=0 python3.10 examples/simple_trainer.py default --data_dir d " +
		"--result_dir out", "d --preset 3dgs --eval --result_dir out"},
	{"OpenSplat, built here", "./build/opensplat d -n 30 -m out", "d --preset 3dgs --iterations 30 -m out"},
	{"splatfacto", "ns-train splatfacto --data scene --output-dir out --max-num-iterations 30000 --vis viewer " +
		"--viewer.quit-on-train-completion True --pipeline.model.rasterize-mode antialiased " +
		"--pipeline.model.cull-alpha-thresh 0.005 --pipeline.model.use-scale-regularization False " +
		"--pipeline.model.camera-optimizer.mode off --machine.seed 3",
		"scene --preset 3dgs --eval --model-path out --iterations 30000 --antialiased --prune-opacity 0.005 --seed 3"},
	{"splatfacto-big with a reader", "splatfacto-big --data scene -m out colmap --downscale-factor 4 --eval-interval " +
		"8 " +
		"--images-path images --orientation-method none",
		"scene --format colmap --preset 3dgs --eval -m out --downscale 4 --eval --test-every 8 --images images"},
	{"splatfacto, what is not here", "splatfacto --data d -m out --pipeline.model.use-bilateral-grid True " +
		"--pipeline.model.use-scale-regularization True --load-dir x",
		"refused: flag --pipeline.model.use-bilateral-grid: there are no bilateral grids; " + exposure + "\n" +
			"flag --pipeline.model.use-scale-regularization: long thin splats are not penalised; --scale-reg X " +
			"penalises " +
			"large ones\nflag --load-dir x: vksplat resume OUT continues a run"},
	{"Brush", "brush scene --total-train-iters 30000 --eval-split-every 8 --eval-every 10000 --export-every 15000 " +
		"--export-path out --max-resolution 1920 --max-splats 2000000 --seed 42 --with-viewer",
		"scene --total-train-iters 30000 --eval --test-every 8 --eval --eval-at 10000,20000,30000 " +
			"--save-at 15000,30000 --model-path out --max-splats 2000000 --seed 42 --viewer"},
	{"Brush, older", "scene --total-steps 7000 --export-path out --ssim-weight 0.2 --render-mode mip",
		"scene --iterations 7000 --model-path out --ssim-lambda 0.2 --antialiased"},
	{"LichtFeld", "-d scene -o out --headless --eval --save-eval-images --strategy mcmc --max-cap 1000000 -i 30000 -r " +
		"4",
		"scene -m out --eval --strategy mcmc --max-cap 1000000 --iterations 30000 -r 4"},
	{"LichtFeld, long", "--data-path scene --output-path out --iter 30000 --enable-mip --bg-mode random --ppisp",
		"scene --model-path out --iter 30000 --antialiased --random-background --exposure --white-balance " +
			"--vignetting"},
	{"OpenSplat", "opensplat scene -n 2000 -d 2 -m out -o splat.ply", "scene --preset 3dgs --iterations 2000 " +
		"--downscale 2 -m out --export splat.ply"},
	{"OpenSplat, long", "--input scene --num-iters 2000 -m out --output splat.ply --val --num-downscales 2 " +
		"--resolution-schedule 250 --ssim-weight 0.2 --warmup-length 500 --densify-size-thresh 0.01 --keep-crs",
		"scene --num-iters 2000 -m out --export splat.ply --eval --num-downscales 2 --resolution-schedule 250 " +
			"--ssim-lambda 0.2 --refine-start 500 --grow-scale 0.01 --origin keep"},
	{"joined letters", "-sscene -m out -d=2 -n7000", "scene --preset 3dgs -m out --downscale 2 --iterations 7000"},
	{"no value", "-s -m out --data", "refused: flag -s: it needs a value\nflag --data: it needs a value"},
	{"neither true nor false", "-s scene -m out --white_background=0",
		"refused: flag --white_background: it is True or False"},
	{"one that is ours", "scene -m out --save-at 7000,30000 --gpu 1", "scene -m out --save-at 7000,30000 --device 1"},
	{"several that nobody has", "scene -m out --iteratons 5 --frobnicate 7 --sead 3",
		"refused: unknown flag: --iteratons (did you mean --iterations?)\nunknown flag: --frobnicate\n" +
			"unknown flag: --sead (did you mean --seed?)"},
	{"what others record and measure", "scene -m out --wandb --wandb_project mine --lpips", "refused: flag --wandb: " +
		boards + "\nflag --wandb_project mine: " + boards + "\nflag --lpips: " + lpipsLater},
	{"one that nobody has", "-s scene -m out --frobnicate", "refused: unknown flag: --frobnicate"},
	{"INRIA, its own recipe", "train.py -s scene -m out --preset mcmc", "scene -m out --preset mcmc"},
	{"INRIA, another strategy", "-s scene -m out --strategy=mcmc", "scene -m out --strategy=mcmc"},
	{"foreign and unknown", "-s scene -m out --normal-loss-weight 1 --frobnicate",
		"refused: unknown flag: --frobnicate\nflag --normal-loss-weight 1: normal priors are not here"},
}

// TestForeign translates command lines of other trainers.
func TestForeign(t *testing.T) {
	for _, tt := range pasted {
		t.Run(tt.name, func(t *testing.T) {
			got, notes, err := translated(append([]string{"train"}, strings.Fields(tt.line)...))
			if want, refused := strings.CutPrefix(tt.want, "refused: "); refused {
				if fault.ExitCode(err) != fault.ExitUsage || err.Error() != want || fault.Hint(err) == "" {
					t.Fatalf("the error is\n%v\nwant\n%s", err, want)
				}
				return
			}
			if line := strings.Join(got, " "); err != nil || line != "train "+tt.want {
				t.Fatalf("it became\n%s\nwant\ntrain %s\nerror: %v", line, tt.want, err)
			}
			if len(notes) == 0 || !strings.HasPrefix(notes[0], "read as: vksplat train ") {
				t.Errorf("the notes are %q", notes)
			}
			again, _, err := translated(got)
			if line := strings.Join(again, " "); err != nil || line != "train "+tt.want {
				t.Errorf("translated once more, it became %s: %v", line, err)
			}
		})
	}
}

// TestForeignScripts translates the lines of INRIA's other programs.
func TestForeignScripts(t *testing.T) {
	for line, want := range map[string]string{
		"render -m out":                       "render out -o out/renders",
		"render -mout -o frames --quiet":      "render out -o frames",
		"render.py -m out --skip_train":       "render out --split test -o out/renders",
		"python render.py -m out -s scene -w": "render out --cameras scene --background white -o out/renders",
		"render --model_path out --iteration 7000 --skip_test -r 2": "render out --iteration 7000 --split train -r 2 " +
			"-o out/renders",
		"render render.py -m out --iteration 60 --skip_train": "render out --iteration 60 --split test " +
			"-o out/renders",
		"train python3 -m torch.distributed.run --nproc 1 render.py -m out": "render out -o out/renders",
		"train X=1 torchrun --nproc_per_node=1 train.py -s kermit":          "train kermit --preset 3dgs",
		"render render.py -m out --iteration -1":                            "render out -o out/renders",
		"render -m out --video flight.mp4":                                  "render out --video flight.mp4",
		"eval -m out":                                                       "eval out",
		"eval -m out -o scores":                                             "eval out -o scores",
		"eval metrics.py -m out":                                            "eval out --protocol inria",
		"python3 metrics.py --model_paths a b":                              "eval a b --protocol inria",
		"eval -m out --source_path scene":                                   "eval out --capture scene",
	} {
		got, notes, err := translated(strings.Fields(line))
		if text := strings.Join(got, " "); err != nil || text != want || len(notes) == 0 ||
			notes[0] != "read as: vksplat "+want {
			t.Errorf("%q became\n%q, want\n%q; %q, %v", line, text, want, notes, err)
		}
	}
	for line, want := range map[string]string{
		"render render.py -m out --skip_train --skip_test": "nothing is left to draw",
		"train python3 -m nerfstudio.scripts.train splatfacto --data x": "-m nerfstudio.scripts.train: that is a " +
			"Python module",
	} {
		if got, _, err := translated(strings.Fields(line)); fault.ExitCode(err) != fault.ExitUsage ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q became %q: %v", line, got, err)
		}
	}
	var out, errs bytes.Buffer
	if code := run([]string{"metrics"}, &out, &errs); code != fault.ExitUsage ||
		!strings.Contains(errs.String(), "hint: vksplat eval OUT --protocol inria measures as INRIA's metrics.py "+
			"does") {
		t.Errorf("%d: %s", code, &errs)
	}
}

// TestForeignPage wants the command lines that docs/coming-from.md compares to mean the same.
func TestForeignPage(t *testing.T) {
	page := must.Get(os.ReadFile("../../docs/coming-from.md"))(t)
	compared := 0
	rows := regexp.MustCompile("(?m)^\\|[^`|]*`([^`]+)`[^`|]*\\| `vksplat ([^`]+)`")
	for _, row := range rows.FindAllStringSubmatch(string(page), -1) {
		words := strings.Fields(row[1])
		if first := words[0]; scripts[first] == nil && first != "-d" && !programs.MatchString(first) || len(words) < 2 {
			continue
		}
		theirs, _, err := translated(append([]string{"train"}, words...))
		if err != nil {
			t.Errorf("%s: %v", row[1], err)
			continue
		}
		got, want := meantBy(t, theirs), meantBy(t, strings.Fields(row[2]))
		if got["model-path"] == "" { // which has a default there
			delete(want, "model-path")
		}
		if compared++; !maps.Equal(got, want) {
			t.Errorf("%s\nis read as\n%v, the page says\n%v", row[1], got, want)
		}
	}
	if compared < 10 {
		t.Errorf("%d lines of the page are compared", compared)
	}
}

// meantBy returns what a command line says: flags that it gives otherwise than they are, by their names, and the rest.
func meantBy(t *testing.T, args []string) map[string]string {
	t.Helper()
	table := map[string][]optionGroup{"train": trainTable(newTrainOptions()), "eval": evalTable(evaluate.NewOptions()),
		"render": renderTable(render.NewOptions())}[args[0]]
	fs := pflag.NewFlagSet(args[0], pflag.ContinueOnError)
	fs.SetNormalizeFunc(spelling())
	register(fs, table)
	if err := fs.Parse(args[1:]); err != nil {
		t.Fatal(args, err)
	}
	meant := map[string]string{"": args[0] + " " + strings.Join(fs.Args(), " ")}
	fs.Visit(func(f *pflag.Flag) {
		if f.Value.String() != f.DefValue {
			meant[f.Name] = f.Value.String()
		}
	})
	return meant
}

// TestForeignTargets wants every flag that others become to be one that train takes, with the values that they become.
func TestForeignTargets(t *testing.T) {
	table := trainTable(newTrainOptions())
	aliases := aliasesOf(table)
	for name, f := range foreignFlags {
		for _, value := range []string{"7", "random"} {
			if f.bare {
				value = yes
			}
			m := f.mean(value, &foreignLine{})
			for _, word := range m.words {
				if flag, long := strings.CutPrefix(word, "--"); long && find(table, flag) == nil {
					t.Errorf("--%s becomes %s, which train does not have", name, word)
				}
			}
		}
		if find(table, canonical(name, aliases)) != nil {
			t.Errorf("--%s is train's own", name)
		}
	}
}

// TestForeignLeavesOurs returns our own command lines as they are.
func TestForeignLeavesOurs(t *testing.T) {
	for _, line := range []string{"train scene -m out --eval --preset mcmc --export model.spz",
		"train scene -m out -r4 --max_steps 7000 --resume", "train default -m out", "train brush -m out",
		"train scene -m out --iteratons 3", "render out -o frames -r 2", "render out --iteration " +
			"7000", "", "train", "train -s x --help",
		"train scene -m out --background 1,1,1 -- -s", "train scene -m out --save-at 7000"} {
		args := strings.Fields(line)
		got, notes, err := translated(args)
		if err != nil || strings.Join(got, " ") != line || notes != nil {
			t.Errorf("%q became %q, %q, %v", line, got, notes, err)
		}
	}
}

// TestForeignRun goes as far as the missing scene: what was translated is what train reads.
func TestForeignRun(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	var out, errs bytes.Buffer
	line := "train -s nowhere -m out -w --data_device cpu --save_iterations 7000 30000"
	code := run(strings.Fields(line), &out, &errs)
	for _, want := range []string{
		"vksplat: note: read as: vksplat train nowhere --preset 3dgs -m out --background white --save_iterations " +
			"7000,30000\n",
		"vksplat: note: --data_device cpu does nothing here: photos are cached under --max-ram and --max-vram\n",
		"vksplat: error: open capture: nowhere: no such folder\n",
	} {
		if !strings.Contains(errs.String(), want) {
			t.Errorf("it lacks %q:\n%s", want, errs.String())
		}
	}
	if code != fault.ExitData {
		t.Errorf("the exit code is %d", code)
	}
}
