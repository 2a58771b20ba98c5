package capture

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/internal/wording"
	"vksplat/scene/photo"
)

// How frames are chosen.
const (
	usualRate   = 2.0 // frames a second, where nothing is asked for
	mostFrames  = 300 // of a video, likewise
	candidates  = 5   // frames that each is the sharpest of, where the video has as many
	smallerSide = 640 // pixels of the longer side at which sharpness is measured
)

// How many frames may be looked at of a video. Where its timestamps jump, ffmpeg repeats one for as long as
// the gap lasts, which can be years.
const (
	ofLength   = 2         // times as many as its length allows, which some files only estimate
	moreFrames = 100       // and these
	longest    = 24 * 3600 // seconds, of a video that does not say its length
)

type video struct {
	format        string  // ffmpeg's name of the file's, by its content
	width, height int     // as it is shown
	rate          float64 // frames a second
	seconds       float64 // 0: unknown
	transfer      string  // of light to numbers
	matrix        string  // of colours to numbers, "" for unknown
	sphere        bool    // its frames are panoramas
}

// opening are the arguments by which ffmpeg and ffprobe open a video: as what it is, and no other file with it.
func opening(format, file string) []string {
	return []string{"-protocol_whitelist", "file", "-f", format, "-i", "file:" + file}
}

// probeVideo asks ffprobe what a file holds.
func (b *base) probeVideo(file string) (*video, error) {
	path, err := need("ffprobe", "reading videos")
	if err != nil {
		return nil, err
	}
	kind := photo.ForeignKindIn(file)
	if kind == nil || !kind.Video {
		return nil, fault.Data("read video", file, "give the video itself, or "+convertFilm, "its content is not MP4, "+
			"MOV, MKV, WebM, AVI or MPEG; playlists, which name other files, are not read")
	}
	said, errs, err := answers(b.ctx, path, append([]string{"-v", "error", "-select_streams", "v:0", "-show_streams",
		"-show_format", "-of", "json"}, opening(kind.Reader, file)...)...)
	if errors.Is(err, fault.ErrInterrupted) {
		return nil, err
	}
	v, bad := parseProbe(said)
	if err == nil {
		err = bad
	}
	if err != nil {
		return nil, fault.Data("read video", file, "check that a player shows it", "%v: %s", err,
			wording.WithoutAddresses(firstLine(errs)))
	}
	v.format = kind.Reader
	return v, nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// parseProbe reads what ffprobe prints.
func parseProbe(said string) (*video, error) {
	var p struct {
		Streams []struct {
			Width, Height int
			Rate          string `json:"avg_frame_rate"`
			Base          string `json:"r_frame_rate"`
			Duration      string
			Transfer      string `json:"color_transfer"`
			Space         string `json:"color_space"`
			Tags          struct{ Rotate string }
			Side          []struct {
				Rotation   float64
				Projection string
			} `json:"side_data_list"`
		}
		Format struct{ Duration string }
	}
	if err := json.Unmarshal([]byte(said), &p); err != nil {
		return nil, errors.New("ffprobe cannot read it")
	}
	if len(p.Streams) == 0 || p.Streams[0].Width <= 0 || p.Streams[0].Height <= 0 {
		return nil, errors.New("it holds no pictures")
	}
	s := p.Streams[0]
	v := &video{width: s.Width, height: s.Height, transfer: s.Transfer, matrix: s.Space}
	for _, text := range []string{s.Rate, s.Base} {
		if v.rate = ratio(text); v.rate > 0 {
			break
		}
	}
	if v.rate <= 0 {
		return nil, errors.New("its frame rate is not known")
	}
	for _, text := range []string{p.Format.Duration, s.Duration} {
		if seconds, err := strconv.ParseFloat(text, 64); err == nil && seconds > 0 && seconds < math.MaxInt32 {
			v.seconds = seconds
			break
		}
	}
	turn, _ := strconv.ParseFloat(s.Tags.Rotate, 64) // none: 0
	for _, side := range s.Side {
		turn += side.Rotation
		v.sphere = v.sphere || side.Projection == "equirectangular"
	}
	if int(math.Abs(math.Round(turn/90)))%2 == 1 { // ffmpeg turns the pictures as players do
		v.width, v.height = v.height, v.width
	}
	return v, nil
}

// ratio reads 30000/1001; 0 for what is none.
func ratio(text string) float64 {
	over, under, _ := strings.Cut(text, "/")
	a, err := strconv.ParseFloat(over, 64)
	b, errB := strconv.ParseFloat(under, 64)
	if err != nil || errB != nil || b == 0 {
		return 0
	}
	return a / b
}

// sampling says which frames of a video are looked at, and how many are taken.
type sampling struct {
	rate float64 // of the frames that are looked at
	take float64 // frames to take a second
}

func (o *Options) sample(v *video) (sampling, error) {
	s := sampling{take: usualRate}
	switch {
	case o.Fps > 0:
		s.take = o.Fps
	case o.Frames > 0 && v.seconds == 0:
		return s, errors.New("its length is not known")
	case o.Frames > 0:
		s.take = float64(o.Frames) / v.seconds
	case v.seconds*usualRate > mostFrames:
		s.take = mostFrames / v.seconds
	}
	s.take = min(s.take, v.rate)
	s.rate = min(s.take*candidates, v.rate)
	if n := v.seconds * s.take; n > mostTaken {
		return s, fmt.Errorf("it lasts %.4g seconds, which are %.4g frames at %g a second; at most %d are allowed",
			v.seconds, n, s.take, mostTaken)
	}
	return s, nil
}

// most is how many frames may be looked at.
func (s sampling) most(v *video) int {
	if v.seconds == 0 {
		return int(longest * s.rate)
	}
	return int(ofLength*v.seconds*s.rate) + moreFrames
}

// bucket gives the number of the frame to take that a frame that is looked at is a candidate for.
func (s sampling) bucket(i int) int { return int(float64(i)*s.take/s.rate + 1e-9) }

// HDR is brought to what screens and photos show, where this ffmpeg can.
var hdrTransfers = map[string]string{"smpte2084": "PQ", "arib-std-b67": "HLG"}

const toneMap = "zscale=t=linear:npl=100,format=gbrpf32le,zscale=p=bt709,tonemap=tonemap=hable:desat=0," +
	"zscale=t=bt709:m=bt709:r=tv,format=yuv420p,"

// toned gives the filters that make a video SDR, "" where it is or cannot be made.
func (b *base) toned(v *video, file, ffmpeg string) (string, error) {
	name := hdrTransfers[v.transfer]
	if name == "" {
		return "", nil
	}
	filters, err := ask(b.ctx, ffmpeg, "-hide_banner", "-filters")
	if err != nil {
		return "", err
	}
	if strings.Contains(filters, " zscale ") && strings.Contains(filters, " tonemap ") {
		return toneMap, nil
	}
	b.console.Warn(fmt.Sprintf("%s is HDR (%s), and this ffmpeg cannot convert that: colours will be pale; an ffmpeg "+
		"with the filter zscale converts them", file, name))
	return "", nil
}

// frameName names the frames of extract.
var frameName = regexp.MustCompile(`^\d{5,}\.jpg$`)

func (r *running) takeFrames(s *source, n int) error {
	name := stageFrames
	if n > 0 {
		name = fmt.Sprintf("%s-%d", stageFrames, n+1)
	}
	folder := filepath.Join(r.taken(), s.folder)
	do := func() (string, error) {
		ffmpeg, err := need("ffmpeg", "reading videos")
		if err != nil {
			return "", err
		}
		v := s.film
		how, err := r.o.sample(v)
		if err != nil {
			return "", err
		}
		if err := os.MkdirAll(r.o.in(folder), 0o777); err != nil {
			return "", output.FolderError(r.o.Out, err)
		}
		sharp, err := r.sharpness(name, ffmpeg, s.path, v, how)
		if err != nil {
			return "", err
		}
		take := sharpest(sharp, how)
		if err := r.extract(name, ffmpeg, s.path, v, how, take, folder); err != nil {
			return "", err
		}
		return fmt.Sprintf("%s, the sharpest of %d", cli.Count(len(take), "frame"), len(sharp)), nil
	}
	key := text(s.path, mark(s.path), r.o.Fps, r.o.Frames)
	err := r.stages.do(stage{name: name, key: key, outputs: []string{folder}, makes: frameName, do: do})
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(r.o.in(folder))
	for _, e := range entries {
		if !e.IsDir() && strings.HasSuffix(e.Name(), ".jpg") {
			r.photos = append(r.photos, strings.TrimPrefix(s.folder+"/"+e.Name(), "/"))
		}
	}
	return err
}

// decoding begins ffmpeg's command line for the frames that are looked at.
func decoding(v *video, file, filters string) []string {
	return slices.Concat([]string{"-hide_banner", "-nostdin", "-loglevel", "warning"}, opening(v.format, file),
		[]string{"-map", "0:v:0", "-an", "-sn", "-dn", "-vf", filters})
}

// fpsText prints a rate for ffmpeg.
func fpsText(rate float64) string { return strconv.FormatFloat(rate, 'f', 6, 64) }

// convertFilm is the remedy for a video with odd timestamps.
const convertFilm = "convert it with ffmpeg to MP4, and give that file"

// sharpness measures the frames that are looked at, on small grey pictures of them.
func (b *base) sharpness(stage, ffmpeg, file string, v *video, how sampling) ([]float64, error) {
	scale := min(1, float64(smallerSide)/float64(max(v.width, v.height)))
	w, h := max(int(float64(v.width)*scale), 3), max(int(float64(v.height)*scale), 3)
	g := &greyFrames{w: w, h: h, pix: make([]byte, 0, w*h)}
	about := int(v.seconds * how.rate)
	g.measured = func(n int) { b.show.update(n, max(about, n), "looked at %d of about %d", n, max(about, n)) }
	filters := fmt.Sprintf("fps=%s,scale=%d:%d:flags=area,format=gray", fpsText(how.rate), w, h)
	most := how.most(v)
	args := append(decoding(v, file, filters), "-frames:v", strconv.Itoa(most+1), "-f", "rawvideo", "pipe:1")
	if err := b.run(process{stage: stage, program: ffmpeg, args: args, stdout: g}); err != nil {
		return nil, err
	}
	switch {
	case len(g.sharp) > most && v.seconds > 0:
		return nil, fault.Data("read video", file, convertFilm,
			"it says that it lasts %.4g seconds, and ffmpeg makes more "+
				"than %d frames of it at %.4g a second: its timestamps jump", v.seconds, most, how.rate)
	case len(g.sharp) > most:
		return nil, fault.Data("read video", file, convertFilm, "its length is unknown, and it has more than %d "+
			"frames at %.4g a second", most, how.rate)
	case len(g.sharp) == 0:
		return nil, fault.Data("read video", file, "check that a player shows it", "it holds no pictures")
	}
	return g.sharp, nil
}

// extract writes the chosen ones of the frames that are looked at as JPEGs.
func (b *base) extract(stage, ffmpeg, file string, v *video, how sampling, take []int, folder string) error {
	tone, err := b.toned(v, file, ffmpeg)
	if err != nil {
		return err
	}
	matrix := ""
	if (v.matrix == "" || v.matrix == "unknown") && min(v.width, v.height) >= 720 && tone == "" {
		matrix = "in_color_matrix=bt709:" // as players take it for
	}
	// A JPEG has the full range and the matrix of BT.601. The frames get times of an even rate, so that none is
	// repeated or left out.
	filters := fmt.Sprintf("fps=%s,select='%s',settb=1/25,setpts=N,%sscale=%sout_color_matrix=bt601:out_range=pc,"+
		"format=yuvj420p", fpsText(how.rate), selection(take), tone, matrix)
	args := append(decoding(v, file, filters), "-r", "25", "-qscale:v", "1", "-qmin", "1", "-f", "image2", "-y",
		strings.ReplaceAll(output.Absolute(b.o.in(folder)), "%", "%%")+string(filepath.Separator)+"%05d.jpg")
	b.show.update(0, len(take), "writing %s", cli.Count(len(take), "frame"))
	if err := b.run(process{stage: stage, program: ffmpeg, args: args}); err != nil {
		return err
	}
	written, err := filepath.Glob(filepath.Join(output.EscapeGlob(b.o.in(folder)), "*.jpg"))
	if err != nil {
		return err
	}
	if len(written) != len(take) {
		return fault.Data("read video", file, convertFilm,
			"%d of its frames were chosen, ffmpeg wrote %d", len(take), len(written))
	}
	return nil
}

// selection is the expression of ffmpeg that is 1 for the frames of some ascending numbers. It halves the numbers, so
// that a frame takes few comparisons.
func selection(take []int) string {
	switch len(take) {
	case 0:
		return "0"
	case 1:
		return fmt.Sprintf("eq(n,%d)", take[0])
	}
	middle := len(take) / 2
	return fmt.Sprintf("if(lt(n,%d),%s,%s)", take[middle], selection(take[:middle]), selection(take[middle:]))
}
