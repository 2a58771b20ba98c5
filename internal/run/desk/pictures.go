package desk

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"vksplat/internal/run/output"
	"vksplat/scene/photo"
)

// Bounds of pictures that are made of sheets.
const (
	pictureSide  = 640 // px
	pictureBytes = 80 << 10
)

// pictureOf is the file that shows a run, and when it was made: the preview of train, or the first sheet of the newest
// evaluation. changed is zero where there is none.
func pictureOf(dir string) (file string, changed time.Time) {
	file = filepath.Join(dir, previewFile)
	if info, err := os.Stat(file); err == nil {
		return file, info.ModTime()
	}
	folders := output.StepFolders(dir, output.PictureFolder, -1)
	if len(folders) == 0 {
		return "", time.Time{}
	}
	sheets, err := filepath.Glob(filepath.Join(output.EscapeGlob(folders[len(folders)-1]), "*.png"))
	if err != nil || len(sheets) == 0 {
		return "", time.Time{}
	}
	info, err := os.Stat(sheets[0])
	if err != nil {
		return "", time.Time{}
	}
	return sheets[0], info.ModTime()
}

// picture serves what shows a run, a JPEG.
func (d *desk) picture(w http.ResponseWriter, r *http.Request) {
	dir, err := d.absolute(r.URL.Query().Get("run"))
	if err != nil {
		http.Error(w, "there is no such run", http.StatusNotFound)
		return
	}
	file, changed := pictureOf(dir)
	file, err = d.file(file)
	if err != nil {
		http.Error(w, "there is no picture", http.StatusNotFound)
		return
	}
	if filepath.Ext(file) != ".png" {
		d.serveFile(w, r, file)
		return
	}
	_, render, err := photo.ReadSheet(file)
	var data []byte
	if err == nil {
		data, err = photo.SmallJPEG(render, pictureSide, pictureBytes)
	}
	if err != nil {
		http.Error(w, "there is no picture", http.StatusNotFound)
		return
	}
	http.ServeContent(w, r, previewFile, changed, bytes.NewReader(data))
}
