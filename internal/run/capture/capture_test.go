//go:build unix

package capture

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/output"
)

// commands are the first words of what fakes were called with.
func commands(list []string) (names []string) {
	for _, line := range list {
		words := strings.Fields(line)
		switch {
		case len(words) > 1 && (words[0] == "colmap" || words[0] == "glomap"):
			names = append(names, words[1])
		case len(words) > 0:
			names = append(names, words[0])
		}
	}
	return names
}

// TestPhotos makes a scene of a folder of photos, and does nothing the second time.
func TestPhotos(t *testing.T) {
	o := withPhotos(t, 6)
	said, err := run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"tools:    COLMAP 3.8 without CUDA", "6 photos with one camera", "exhaustive matching",
		"cameras:  6 of 6 photos (100 %)", "reprojection error 0.50 pixels", "Ready: vksplat train " + o.Out + " -m OUT"} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
	wantFiles(t, o.Out, "images/p00.jpg", "sparse/0/cameras.bin", "database.db", "logs/features.log",
		"components/0/images.bin")
	if got := strings.Join(commands(calls(t)), " "); got != "feature_extractor exhaustive_matcher mapper" {
		t.Errorf("it ran %s", got)
	}
	said, err = run(t.Context(), o)
	if got := commands(calls(t)); err != nil || len(got) > 0 || strings.Count(said, "done before") != 5 {
		t.Errorf("the second time it ran %v, %v:\n%s", got, err, said)
	}
}

// TestOptionNames wants each version of COLMAP to get the options that it has.
func TestOptionNames(t *testing.T) {
	for version, want := range map[string][]string{
		"3.8":  {"--SiftExtraction.use_gpu 0", "--SiftMatching.use_gpu 0", "--SiftExtraction.max_image_size 900"},
		"3.13": {"--FeatureExtraction.use_gpu 0", "--FeatureMatching.use_gpu 0", "--FeatureExtraction.max_image_size 900"},
		"4.2":  {"--FeatureExtraction.use_gpu 1", "--FeatureMatching.use_gpu 1", "--FeatureExtraction.max_image_size 900"},
	} {
		install(t, version, "colmap")
		o := optionsOf(t, photosIn(t, 4))
		o.MaxSize = 900
		if version == "4.2" {
			withGPU(t)
		}
		must.Get(run(t.Context(), o))(t)
		all := strings.Join(calls(t), "\n")
		for _, w := range append(want, "--ImageReader.single_camera 1", "--ImageReader.camera_model OPENCV",
			"--image_list_path") {
			if !strings.Contains(all, w) {
				t.Errorf("%s: no %s in\n%s", version, w, all)
			}
		}
	}
}

// TestVersionsDiffer has what old versions cannot do refused by the name of the flag, and new ones do it.
func TestVersionsDiffer(t *testing.T) {
	set := map[string]func(o *Options){
		"global": func(o *Options) { o.Mapper = MapGlobal },
	}
	for _, c := range []struct{ version, what, program, want string }{
		{"3.8", "global", "", "leave out --mapper"},
		{"3.8", "global", "glomap", "glomap mapper "},
		{"4.2", "global", "", "colmap global_mapper "},
	} {
		programs := []string{"colmap"}
		if c.program != "" {
			programs = append(programs, c.program)
		}
		install(t, c.version, programs...)
		o := optionsOf(t, photosIn(t, 4))
		set[c.what](o)
		_, err := run(t.Context(), o)
		got := strings.Join(calls(t), "\n") + fault.Hint(err)
		if !strings.Contains(got, c.want) {
			t.Errorf("%s, %s: no %q in %v\n%s", c.version, c.what, c.want, err, got)
		}
	}
}

// TestSequential has photos matched with their neighbours where that is asked for.
func TestSequential(t *testing.T) {
	o := withPhotos(t, 24)
	o.Matching = MatchSequential
	must.Get(run(t.Context(), o))(t)
	if got := strings.Join(commands(calls(t)), " "); got != "feature_extractor sequential_matcher mapper" {
		t.Errorf("it ran %q", got)
	}
}

// TestForeign keeps files that the command did not write.
func TestForeign(t *testing.T) {
	install(t, "3.8", "colmap")
	dir := photosIn(t, 4)
	o := optionsOf(t, dir)
	must.Do(t, os.MkdirAll(o.in("sparse"), 0o777))
	if _, err := run(t.Context(), o); !errors.Is(err, fault.ErrUsage) {
		t.Errorf("a capture is replaced: %v", err)
	}
	o = optionsOf(t, dir)
	must.Get(run(t.Context(), o))(t)
	mine := o.in(modelFolder, "cameras.bin")
	must.Do(t, os.WriteFile(mine, []byte("mine"), 0o666))
	o.Matching = MatchSequential
	if _, err := run(t.Context(), o); !errors.Is(err, fault.ErrUsage) || !strings.Contains(err.Error(), mine) {
		t.Errorf("a changed file is replaced: %v", err)
	}
	o.Overwrite = true
	if _, err := run(t.Context(), o); err != nil {
		t.Errorf("with overwrite: %v", err)
	}
	if _, err := run(t.Context(), &Options{Inputs: []string{dir}, Out: dir, Cameras: Auto, CameraModel: Auto,
		Matching: Auto}); !errors.Is(err, fault.ErrUsage) {
		t.Errorf("photos and scene in one folder: %v", err)
	}
}

// TestOutIsRun refuses the folder of a run for a scene, with --overwrite, too, and leaves it as it is.
func TestOutIsRun(t *testing.T) {
	o := withPhotos(t, 4)
	for _, name := range []string{output.WrittenFile, filepath.Join("point_cloud", "iteration_3", "point_cloud.ply"),
		filepath.Join("checkpoints", "step_3.safetensors")} {
		o.Out, o.Overwrite = filepath.Join(t.TempDir(), "out"), !o.Overwrite
		must.Do(t, os.MkdirAll(filepath.Dir(o.in(name)), 0o777))
		must.Do(t, os.WriteFile(o.in(name), []byte("{}"), 0o666))
		_, err := run(t.Context(), o)
		if !errors.Is(err, fault.ErrUsage) || output.IsFolder(o.in(imagesFolder)) ||
			!strings.Contains(err.Error(), "is the folder of a run, it holds "+o.Out) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestInPlace makes a scene around a folder images.
func TestInPlace(t *testing.T) {
	install(t, "3.8", "colmap")
	o := inPlace(t, 4)
	for range 2 {
		must.Get(run(t.Context(), o))(t)
		wantFiles(t, o.Out, "images/p00.jpg", "images/p03.jpg", "sparse/0/images.bin")
	}
	o.MaxSize = 500
	must.Get(run(t.Context(), o))(t)
	wantFiles(t, o.Out, "images/p00.jpg", "images/p03.jpg")
}

// TestPhotosOnce wants what this program made of photos not taken for more of them: a scene and a run among them, and
// the picture of a scene's coverage.
func TestPhotosOnce(t *testing.T) {
	install(t, "3.8", "colmap")
	photos := photosIn(t, 4)
	first := optionsOf(t, photos)
	first.Out = filepath.Join(photos, "scene")
	must.Get(run(t.Context(), first))(t)
	model := filepath.Join(photos, "out")
	must.Do(t, errors.Join(os.MkdirAll(filepath.Join(model, "test"), 0o777),
		os.WriteFile(filepath.Join(model, output.WrittenFile), []byte("{}"), 0o666),
		writePhoto(filepath.Join(model, "test", "p00.png"), 64, 48, 1)))
	for _, c := range []struct{ input, want string }{
		{photos, "scene is left out: vksplat made it"}, {photos, "out is left out: vksplat made it"}, {first.Out, ""},
	} {
		said, err := run(t.Context(), optionsOf(t, c.input))
		if err != nil || !strings.Contains(said, "4 of 4 photos") || !strings.Contains(said, c.want) {
			t.Errorf("%s, %q: %v\n%s", c.input, c.want, err, said)
		}
	}
	farmed := optionsOf(t, first.Out) // what a task of the farm makes has no state
	must.Do(t, os.Remove(first.in(stateFile)))
	if said, err := run(t.Context(), farmed); err != nil || !strings.Contains(said, "4 of 4 photos") {
		t.Errorf("%v\n%s", err, said)
	}
}

// TestTempsGo wants what a killed command left in the scene's folder removed by the next one.
func TestTempsGo(t *testing.T) {
	o := withPhotos(t, 4)
	temp, other := o.in("."+coverageFile+".tmp123"), o.in(".mine.png.tmp123")
	must.Get(run(t.Context(), o))(t)
	must.Do(t, errors.Join(os.WriteFile(temp, nil, 0o666), os.WriteFile(other, nil, 0o666)))
	if _, err := run(t.Context(), o); err != nil || output.IsFile(temp) || !output.IsFile(other) {
		t.Errorf("%v, ours stayed: %v, another stayed: %v", err, output.IsFile(temp), output.IsFile(other))
	}
}

// TestDiskFull wants a full disk, which COLMAP meets, to be the machine's fault and no defect.
func TestDiskFull(t *testing.T) {
	o := withPhotos(t, 4)
	t.Setenv(fakeFails, "feature_extractor")
	t.Setenv(fakeTrace, "4")
	_, err := run(t.Context(), o)
	if fault.ExitCode(err) != fault.ExitTryAgain || !strings.Contains(fault.Hint(err), "make room") {
		t.Errorf("code %d, %v: %s", fault.ExitCode(err), err, fault.Hint(err))
	}
}

// TestOwnPhotosAfterVideo keeps photos that the user put where the frames of a video were to come, in a run that was
// stopped: they are the capture now, and the video is refused.
func TestOwnPhotosAfterVideo(t *testing.T) {
	installFilms(t)
	o := optionsOf(t, filmFile(t))
	must.Do(t, errors.Join(os.MkdirAll(o.Out, 0o777), os.Rename(photosIn(t, 4), o.in(imagesFolder)),
		os.WriteFile(o.in(stateFile), []byte(`{"stages":[{"name":"frames","key":"0"}]}`), 0o666)))
	own := *o
	own.Inputs = []string{o.in(imagesFolder)}
	must.Get(run(t.Context(), &own))(t)
	if _, err := run(t.Context(), o); !errors.Is(err, fault.ErrUsage) {
		t.Errorf("frames in the place of photos: %v", err)
	}
	wantFiles(t, o.in(imagesFolder), "p00.jpg", "p03.jpg")
}

// TestOwnPhotoAmongFrames stops a video's frames in the middle, and puts a photo beside them, which stays.
func TestOwnPhotoAmongFrames(t *testing.T) {
	installFilms(t)
	o := optionsOf(t, filmFile(t))
	t.Setenv(fakeFails, "ffmpeg")
	if _, err := run(t.Context(), o); err == nil {
		t.Fatal("ffmpeg did not fail")
	}
	t.Setenv(fakeFails, "")
	err := errors.Join(os.MkdirAll(o.in(imagesFolder), 0o777), writePhoto(o.in(imagesFolder, "00001.jpg"), 64, 48, 1),
		writePhoto(o.in(imagesFolder, "mine.jpg"), 64, 48, 1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run(t.Context(), o); !errors.Is(err, fault.ErrUsage) || !strings.Contains(err.Error(), "mine.jpg was not") {
		t.Errorf("%v; want mine.jpg refused", err)
	}
	wantFiles(t, o.in(imagesFolder), "mine.jpg")
	must.Do(t, os.Remove(o.in(imagesFolder, "mine.jpg")))
	if said, err := run(t.Context(), o); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
}

// TestMissingTools names the command that installs what is missing.
func TestMissingTools(t *testing.T) {
	photos := photosIn(t, 4)
	film := filmFile(t)
	must.Do(t, os.WriteFile(filepath.Join(photos, "x.HEIC"), []byte(headOf["heic"]), 0o666))
	for _, c := range []struct {
		input     string
		installed []string
		want      string
	}{
		{photos, nil, "colmap"}, {film, []string{"colmap"}, "ffmpeg"}, {photos, []string{"colmap"}, "libheif"},
	} {
		install(t, "3.8", c.installed...)
		o := optionsOf(t, c.input)
		_, err := run(t.Context(), o)
		hint := fault.Hint(err)
		if !errors.Is(err, fault.ErrMachine) || !strings.Contains(hint, "apt-get install "+c.want) ||
			!strings.Contains(hint, "brew install "+c.want) || !strings.Contains(hint, "conda install") {
			t.Errorf("%v: %v; %s", c.installed, err, hint)
		}
		if output.IsFolder(o.Out) {
			t.Error("the folder is left behind")
		}
	}
}

// TestMasks copies masks to the names that COLMAP looks for.
func TestMasks(t *testing.T) {
	install(t, "3.8", "colmap")
	dir, masks := photosIn(t, 4), t.TempDir()
	must.Do(t, errors.Join(writePhoto(filepath.Join(masks, "p00.png"), 64, 48, 0),
		writePhoto(filepath.Join(masks, "p01.jpg"), 64, 48, 0)))
	o := optionsOf(t, dir)
	o.Masks = masks
	said := must.Get(run(t.Context(), o))(t)
	wantFiles(t, o.Out, "masks/p00.jpg.png", "masks/p01.jpg.png")
	if !strings.Contains(strings.Join(calls(t), "\n"), "--ImageReader.mask_path "+o.in(masksFolder)) ||
		!strings.Contains(said, "2 of 4 photos have no mask") {
		t.Errorf("masks are not used:\n%s", said)
	}
}

// TestVerdict says which photos have no camera and why, and what to do about it.
func TestVerdict(t *testing.T) {
	install(t, "3.8", "colmap")
	dir := photosIn(t, 14)
	must.Do(t, errors.Join(writePhoto(filepath.Join(dir, "p12.jpg"), 64, 48, 0.05),
		writePhoto(filepath.Join(dir, "p13.jpg"), 64, 48, 1)))
	o := optionsOf(t, dir)
	t.Setenv(fakeComponents, "5,6")
	said, err := run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"cameras:  6 of 14 photos (43 %)", "taken:    component 1, of 2",
		"other:    component 0: 5 photos", "p00.jpg: in component 0", "p12.jpg: blurred", "p13.jpg: too few matches",
		"only 6 of 14 photos", "2 components"} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
	o.Model = 0
	if said, err = run(t.Context(), o); err != nil || !strings.Contains(said, "cameras:  5 of 14") {
		t.Errorf("component 0: %v\n%s", err, said)
	}
	o.Model = 7
	if _, err = run(t.Context(), o); !errors.Is(err, fault.ErrUsage) {
		t.Errorf("component 7: %v", err)
	}
	t.Setenv(fakeComponents, "none")
	o = optionsOf(t, dir)
	if _, err = run(t.Context(), o); !errors.Is(err, errNoModel) || fault.ExitCode(err) != fault.ExitData {
		t.Errorf("no component: %v", err)
	}
}

// TestVideo takes the sharpest frames.
func TestVideo(t *testing.T) {
	installFilms(t)
	o := optionsOf(t, filmFile(t))
	o.Frames = 10
	said, err := run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said, "10 frames, the sharpest of 30") {
		t.Errorf("it says\n%s", said)
	}
	wantFiles(t, o.Out, "images/00001.jpg", "images/00010.jpg")
	all := strings.Join(calls(t), "\n")
	for i := range 10 {
		if want := fmt.Sprintf("eq(n,%d)", 3*i+1); !strings.Contains(all, want) {
			t.Errorf("no %s in\n%s", want, all)
		}
	}
	if _, err = run(t.Context(), o); err != nil || strings.Contains(strings.Join(calls(t), ""), "ffmpeg") {
		t.Errorf("frames are taken again, %v", err)
	}
}
