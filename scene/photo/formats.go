package photo

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"vksplat/scene"
)

func isJPEG(data []byte) bool { return bytes.HasPrefix(data, []byte("\xff\xd8")) }
func isPNG(data []byte) bool  { return bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")) }
func isWebP(data []byte) bool {
	return len(data) >= riffHeader && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP"
}

// foreignKind is a kind of file that holds photos and is not decoded here.
type foreignKind struct {
	Name       string   // as in "the file is ..."
	extensions []string // lower case
	brands     []string // of files that begin with a box "ftyp"
	starts     []string // of other files; "?" is any byte
	Video      bool
	Reader     string // that ImageMagick has for photos, and ffmpeg for videos
	apart      bool   // files of this kind beside photos are seldom photos themselves: EXR holds depths and normals
	// that converts; %s is the folder and a slash, %s the extension as it is written, or %s the file for videos
	command string
}

// foreignKinds come in the order in which contents are compared: TIFF is what most raw files begin like.
var foreignKinds = []foreignKind{
	{Name: "HEIC", Reader: "heic", extensions: []string{".heic", ".heif", ".hif"},
		brands:  []string{"hei", "hev", "mif", "msf"},
		command: `for f in %s*%s; do heif-convert -q 95 "$f" "${f%%.*}.jpg"; done`},
	{Name: "AVIF", Reader: "heic", extensions: []string{".avif"}, brands: []string{"avif", "avis"},
		command: "mogrify -format png %s*%s"},
	{Name: "a raw photo", Reader: "dng",
		extensions: []string{".dng", ".cr2", ".cr3", ".nef", ".arw", ".raf", ".rw2", ".orf"},
		brands:     []string{"crx "},
		starts:     []string{"FUJIFILMCCD-RAW", "IIU\x00", "IIRO", "IIRS", "MMOR", "II*\x00\x10\x00\x00\x00CR"},
		command:    `for f in %s*%s; do darktable-cli "$f" "${f%%.*}.jpg"; done`},
	{Name: "TIFF", Reader: "tiff", extensions: []string{".tif", ".tiff"},
		starts:  []string{"II*\x00", "MM\x00*", "II+\x00", "MM\x00+"}, // + of BigTIFF
		command: "mogrify -format png %s*%s"},
	{Name: nameVideo, Reader: "mov", Video: true, extensions: []string{".mp4", ".mov", ".m4v", ".insv"},
		brands: []string{""},
		starts: []string{"????moov", "????mdat", "????wide", "????free", "????skip", "????pnot", // of old QuickTime
			"????styp", "????moof", "????sidx"}, // of pieces of a stream
		command: takeFrames},
	{Name: nameVideo, Reader: "matroska", Video: true, extensions: []string{".mkv", ".webm"},
		starts: []string{"\x1aE\xdf\xa3"}, command: takeFrames},
	{Name: nameVideo, Reader: "avi", Video: true, extensions: []string{".avi"}, starts: []string{"RIFF????AVI"},
		command: takeFrames},
	{Name: nameVideo, Reader: "mpegts", Video: true, command: takeFrames,
		starts: []string{"G" + strings.Repeat("?", tsPacket-1) + "G", "????G" + strings.Repeat("?", m2tsPacket-1) + "G"}},
	{Name: nameVideo, Reader: "mpeg", Video: true, starts: []string{"\x00\x00\x01\xba"}, command: takeFrames},
	{Name: "BMP", Reader: "bmp", extensions: []string{".bmp"}, starts: []string{"BM"},
		command: "mogrify -format png %s*%s"},
	{Name: "GIF", Reader: "gif", extensions: []string{".gif"}, starts: []string{"GIF8"},
		command: "mogrify -format png %s*%s"},
	{Name: "EXR", Reader: "exr", apart: true, extensions: []string{".exr"}, starts: []string{"v/1\x01"},
		command: "mogrify -format png %s*%s"},
	{Name: "JPEG XL", Reader: "jxl", apart: true, extensions: []string{".jxl"},
		starts:  []string{"\xff\x0a", "\x00\x00\x00\x0cJXL "},
		command: `for f in %s*%s; do djxl "$f" "${f%%.*}.png"; done`},
}

// What kinds of videos have in common.
const (
	nameVideo  = "a video"
	takeFrames = "mkdir -p images && ffmpeg -i %s -qscale:v 1 -qmin 1 -vf fps=2 images/%%05d.jpg"
)

// How long packets of MPEG-TS are, in bytes: as they are sent, and on disks (M2TS), with the time before each.
const tsPacket, m2tsPacket = 188, 192

// foreignError says that a file is of a kind that is not decoded.
type foreignError struct{ kind *foreignKind }

func (e *foreignError) Error() string {
	return "the file is " + e.kind.Name + ", which is not read"
}

// notPhoto says what data, which is no photo that can be decoded, is instead.
func notPhoto(data []byte) error {
	if len(data) == 0 {
		return errors.New("the file is empty")
	}
	for i := range foreignKinds {
		if k := &foreignKinds[i]; k.begins(data) {
			return &foreignError{k}
		}
	}
	return errors.New("the file is neither JPEG nor PNG nor WebP")
}

func (k *foreignKind) begins(data []byte) bool {
	if len(data) >= 12 && string(data[4:8]) == "ftyp" {
		return slices.ContainsFunc(k.brands,
			func(brand string) bool { return strings.HasPrefix(string(data[8:12]), brand) })
	}
	return slices.ContainsFunc(k.starts, func(start string) bool {
		for i := range len(start) {
			if i >= len(data) || start[i] != '?' && start[i] != data[i] {
				return false
			}
		}
		return true
	})
}

// ForeignKindIn gives the kind of a file by its first bytes, nil for what is decoded and for what is not known. A
// program that is given the file is to be told its kind: left to themselves, ffmpeg and ImageMagick take a text for a
// playlist or a drawing, whatever the file's name, and read the files of this machine that it names.
func ForeignKindIn(path string) *foreignKind {
	_, _, err := Size(path)
	if foreign, ok := errors.AsType[*foreignError](err); ok {
		return foreign.kind
	}
	return nil
}

// ConversionHint gives the command that makes photos of a file, or of all files beside it with the same extension, if
// its name is that of a kind that holds photos and is not decoded: HEIC, AVIF, raw, TIFF, video. It is "" for other
// names.
func ConversionHint(path string) string {
	if k := KindInPlace(path); k != nil {
		return k.hint(path)
	}
	return ""
}

// ForeignKindOf gives the kind of a photo or video by its name, nil for names of other files.
func ForeignKindOf(path string) *foreignKind {
	if k := KindInPlace(path); k != nil && !k.apart {
		return k
	}
	return nil
}

// KindInPlace is ForeignKindOf of a file that has the name of a photo but for the extension: what may be no photo
// elsewhere is one then.
func KindInPlace(path string) *foreignKind {
	for i := range foreignKinds {
		if k := &foreignKinds[i]; slices.Contains(k.extensions, strings.ToLower(filepath.Ext(path))) {
			return k
		}
	}
	return nil
}

// hint tells how to convert the file at path, which is of kind k.
func (k *foreignKind) hint(path string) string {
	if k.Video {
		return "take pictures from it: " + fmt.Sprintf(k.command, ShellWord(path))
	}
	folder, name := filepath.Split(path)
	if folder != "" {
		folder = ShellWord(folder)
	}
	return "convert the photos, their poses stay as they are: " + fmt.Sprintf(k.command, folder,
		ShellWord(filepath.Ext(name)))
}

// ShellWord gives a path as a word of a shell's command, in quotes if the shell would take it apart.
func ShellWord(path string) string {
	special := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("/._-+:,@%", r) &&
			r != filepath.Separator || r == utf8.RuneError
	}
	if path != "" && !strings.ContainsFunc(path, special) {
		return path
	}
	if runtime.GOOS == "windows" {
		return `"` + path + `"`
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// HintOf tells how to convert the file at path if err says that it is of a foreign kind, or too large; "" otherwise.
func HintOf(path string, err error) string {
	if foreign, ok := errors.AsType[*foreignError](err); ok {
		return foreign.kind.hint(path)
	}
	if large, ok := errors.AsType[scene.TooLarge](err); ok {
		return fmt.Sprintf("scale such photos down, their poses stay as they are: mogrify -resize %d%% %s",
			large.Scale(), ShellWord(path))
	}
	return ""
}
