package results

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"vksplat/internal/atomicfile"
	"vksplat/internal/fault"
	"vksplat/internal/strictjson"
	"vksplat/scene"
)

// Files of scores, in INRIA's layout and with its names: method -> metric -> mean, and method -> metric -> view ->
// value.
const (
	resultsFile = "results.json"
	perViewFile = "per_view.json"
	protocolKey = "protocol" // that a method's numbers were taken by
	weightsKey  = "lpips_weights_sha256"
	trainedKey  = "views_trained_on" // how many of the views the model was trained on; null: unknown
	// a Drawn; absent of scores by versions before it, and of pictures of other programs
	drawnKey = "drawn"
	psnrKey  = "PSNR"
	// of the picture as the photo's camera would have taken it; see ViewScore
	lensPSNRKey = "lens_psnr"
	lensSSIMKey = "lens_ssim"
	lpipsKey    = "LPIPS"
	// of the camera after it was moved to where the photo fits best; likewise
	alignedPSNRKey = "aligned_psnr"
	alignedSSIMKey = "aligned_ssim"
	// NearestDegrees and NearestDistance are what files and tables call the numbers of scene.Nearest, view by view.
	NearestDegrees  = "nearest_degrees"
	NearestDistance = "nearest_distance"
)

// MethodName is the name of a step's model in INRIA's files.
func MethodName(step int) string { return "ours_" + strconv.Itoa(step) }

// Score is a named number. What could not be measured has none, and is in no file.
type Score struct {
	Name  string // as files and tables call it
	Value float64
	Known bool
}

// ViewScores are the scores of one view.
type ViewScores struct {
	Name   string // of the photo
	Scores []Score
}

// Result is the scores of a model. Its views have the same scores in the same order.
type Result struct {
	Method   string // as in MethodName
	Protocol string
	Weights  string // SHA-256 of the file that LPIPS was measured with, "" where it was not
	Views    []ViewScores

	TrainedOn *TrainedOn // nil where no model is measured
	Drawn     *Drawn     // likewise

	Nearest map[string]scene.Nearest // of held-out views by name; nil where that is not known
}

// Drawn is everything besides splats and camera that decides the pixels of a score. A file says what it can of it
// (ply.Meta); the score names all of it.
type Drawn struct {
	Near        float64    `json:"near"`       // near plane of all views, the median camera distance being 1
	NearUnits   float64    `json:"near_units"` // the same in the capture's units
	Background  [3]float32 `json:"background"`
	Antialiased bool       `json:"antialiased"`
	Masked      bool       `json:"masked"` // pixels that masks leave out do not count
	Photos      string     `json:"photos"` // their size, as in "64x48"
}

// String words it.
func (d *Drawn) String() string {
	text := fmt.Sprintf("near plane %g, ", d.Near)
	switch b := d.Background; b {
	case [3]float32{}:
		text += "black background"
	case [3]float32{1, 1, 1}:
		text += "white background"
	default:
		text += fmt.Sprintf("background %g,%g,%g", b[0], b[1], b[2])
	}
	if d.Antialiased {
		text += ", antialiased"
	}
	if d.Masked {
		text += ", masked pixels left out"
	}
	return text
}

// TrainedOn says how many of the views that a model is measured on it was trained on.
type TrainedOn struct {
	Views int
	Known bool
}

// Means returns the unweighted means over the views of the scores that all of them have. The others are not known.
func (r *Result) Means() []Score {
	if len(r.Views) == 0 {
		return nil
	}
	means := make([]Score, len(r.Views[0].Scores))
	for k, s := range r.Views[0].Scores {
		m := Score{Name: s.Name, Known: true}
		for _, v := range r.Views {
			m.Value += v.Scores[k].Value
			m.Known = m.Known && v.Scores[k].Known
		}
		if m.Value /= float64(len(r.Views)); !m.Known {
			m.Value = 0
		}
		means[k] = m
	}
	return means
}

// MergeResults puts a result into results.json and per_view.json in dir. What these say of other methods by the same
// protocol stays, and of this one the scores that were not measured now, if the others are of the same model. Methods
// of other protocols are replaced: their numbers are not to be mixed. It returns their names.
func MergeResults(dir string, r *Result) (replaced []string, err error) {
	means, perView, err := r.entries()
	if err != nil {
		return nil, err
	}
	allMeans, err := readResults(filepath.Join(dir, resultsFile))
	if err != nil {
		return nil, err
	}
	allViews, err := readResults(filepath.Join(dir, perViewFile))
	if err != nil {
		return nil, err
	}
	keepFormer(r, means, perView, entryOf(allMeans[r.Method]), entryOf(allViews[r.Method]))
	replaced = dropOthers(allMeans, r.Protocol)
	dropOthers(allViews, r.Protocol)
	allMeans[r.Method], allViews[r.Method] = means, perView
	return replaced, writeResults(dir, allMeans, allViews)
}

// entries are what results.json and per_view.json say of the method. A score that is not finite is an error.
func (r *Result) entries() (means, perView map[string]any, err error) {
	means, perView = map[string]any{protocolKey: r.Protocol}, map[string]any{protocolKey: r.Protocol}
	if r.Weights != "" {
		means[weightsKey], perView[weightsKey] = r.Weights, r.Weights
	}
	if t := r.TrainedOn; t != nil {
		means[trainedKey] = nil
		if t.Known {
			means[trainedKey] = t.Views
		}
	}
	if r.Drawn != nil {
		means[drawnKey], perView[drawnKey] = r.Drawn, r.Drawn
	}
	for k, m := range r.Means() {
		if !m.Known {
			continue
		}
		views := make(map[string]float64, len(r.Views))
		for _, v := range r.Views {
			if x := v.Scores[k].Value; math.IsNaN(x) || math.IsInf(x, 0) {
				return nil, nil, fmt.Errorf("write results: %s of %q is %v: %w", m.Name, v.Name, x, scene.ErrNotFinite)
			}
			views[v.Name] = v.Scores[k].Value
		}
		means[m.Name], perView[m.Name] = m.Value, views
	}
	if r.Nearest != nil {
		degrees, distances := map[string]float64{}, map[string]float64{}
		for _, v := range r.Views {
			if n, known := r.Nearest[v.Name]; known {
				degrees[v.Name], distances[v.Name] = n.Degrees, n.Distance
			}
		}
		perView[NearestDegrees], perView[NearestDistance] = degrees, distances
	}
	return means, perView, nil
}

// dropOthers removes the methods of other protocols from what a file holds, and returns their names. What other
// programs measured names none, and stays.
func dropOthers(all map[string]any, protocol string) (names []string) {
	for method, raw := range all {
		if p := entryOf(raw)[protocolKey]; p != nil && p != protocol {
			names = append(names, method)
			delete(all, method)
		}
	}
	slices.Sort(names)
	return names
}

// entryOf returns what a file of scores says of a method.
func entryOf(raw any) (entry map[string]any) {
	text, _ := raw.(json.RawMessage)
	if json.Unmarshal(text, &entry) != nil {
		return nil // it is replaced
	}
	return entry
}

// samePSNR is by how much, in dB, two measurements of a view of one model differ at most.
const samePSNR = 0.01

// keepFormer adds former scores that were not measured now to new ones, which replace the rest: only training knows the
// cameras' lenses, and LPIPS needs weights. The former must be of the same protocol and drawn alike, and each view must
// have the PSNR that it had.
func keepFormer(r *Result, means, perView, formerMeans, formerViews map[string]any) {
	if formerMeans[protocolKey] != r.Protocol || !drawnAlike(r.Drawn, formerMeans[drawnKey]) {
		return
	}
	views, _ := perView[psnrKey].(map[string]float64)
	former, _ := formerViews[psnrKey].(map[string]any)
	if len(views) == 0 || len(views) != len(former) {
		return
	}
	for name, x := range views {
		if was, known := former[name].(float64); !known || math.Abs(was-x) > samePSNR {
			return
		}
	}
	for key, of := range map[string]string{lensPSNRKey: psnrKey, lensSSIMKey: psnrKey, alignedPSNRKey: psnrKey,
		alignedSSIMKey: psnrKey, lpipsKey: psnrKey, "cc_lpips": "cc_psnr", "unmasked_lpips": "unmasked_psnr"} {
		mean, known := formerMeans[key]
		now, _ := means[of].(float64)
		was, _ := formerMeans[of].(float64)
		if known && means[key] == nil && formerViews[key] != nil && math.Abs(now-was) <= samePSNR {
			means[key], perView[key] = mean, formerViews[key]
		}
	}
	if hash := formerMeans[weightsKey]; means[weightsKey] == nil && means[lpipsKey] != nil && hash != nil {
		means[weightsKey], perView[weightsKey] = hash, hash
	}
}

// sameUnit is by which share the unit of a run's frame differs at most from that of its capture with the cameras that
// it refined.
const sameUnit = 0.01

// drawnAlike says whether an entry of a file says the same of how a model was drawn.
func drawnAlike(d *Drawn, entry any) bool {
	text, err := json.Marshal(entry)
	was := &Drawn{}
	if d == nil || err != nil || json.Unmarshal(text, was) != nil {
		return d == nil && entry == nil
	}
	unit := math.Abs(was.NearUnits-d.NearUnits) <= sameUnit*d.NearUnits
	was.NearUnits = d.NearUnits
	return unit && *was == *d
}

// CheckScores is the error of files of scores in dir that cannot take those of a method: they are none, or hold scores
// of it that another program wrote.
func CheckScores(dir, method string) error {
	for _, name := range []string{resultsFile, perViewFile} {
		path := filepath.Join(dir, name)
		all, err := readResults(path)
		if err != nil {
			return err
		}
		raw, known := all[method].(json.RawMessage)
		if !known {
			continue
		}
		var entry map[string]json.RawMessage
		if json.Unmarshal(raw, &entry) != nil || entry[protocolKey] == nil {
			return fmt.Errorf("%s holds scores of %s that this program did not write", path, method)
		}
	}
	return nil
}

// readResults reads a file of scores as far as the methods' names; without the file there are none.
func readResults(path string) (map[string]any, error) {
	var raw map[string]json.RawMessage
	err := strictjson.ReadFile(path, &raw)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, &fault.Error{Op: "read scores", Path: path, Err: fault.TrimPath(err),
			Hint: "move it away: scores are added to what it holds"}
	}
	all := make(map[string]any, len(raw)+1)
	for name, entry := range raw {
		all[name] = entry
	}
	return all, nil
}

// ReadMeans returns what results.json in dir says of a method: its numbers by name, and the protocol.
func ReadMeans(dir, method string) (means map[string]float64, protocol string, err error) {
	entry, protocol, err := readMethod(filepath.Join(dir, resultsFile), method)
	if err != nil {
		return nil, "", err
	}
	return numbersOf(entry), protocol, nil
}

// ReadViews returns what per_view.json in dir says of a method: one of its scores by view, and the protocol.
func ReadViews(dir, method, score string) (views map[string]float64, protocol string, err error) {
	entry, protocol, err := readMethod(filepath.Join(dir, perViewFile), method)
	if err != nil {
		return nil, "", err
	}
	list, _ := entry[score].(map[string]any)
	return numbersOf(list), protocol, nil
}

// readMethod returns what a file of scores says of a method.
func readMethod(path, method string) (entry map[string]any, protocol string, err error) {
	all, err := readResults(path)
	if err != nil {
		return nil, "", err
	}
	raw, ok := all[method].(json.RawMessage)
	if !ok {
		return nil, "", fault.Data("read scores", path, "measure the model with vksplat eval", "it has no scores of %s",
			method)
	}
	if err := json.Unmarshal(raw, &entry); err != nil {
		return nil, "", fault.Data("read scores", path, "measure the model again with vksplat eval", "%s: %w", method,
			strictjson.JSONError(err))
	}
	protocol, _ = entry[protocolKey].(string)
	return entry, protocol, nil
}

// ReadDrawn returns how results.json in dir says that a method was drawn, nil where an earlier version measured it.
func ReadDrawn(dir, method string) (*Drawn, error) {
	all, err := readResults(filepath.Join(dir, resultsFile))
	if err != nil {
		return nil, err
	}
	var entry struct {
		Drawn *Drawn `json:"drawn"`
	}
	if text, ok := all[method].(json.RawMessage); ok {
		err = strictjson.JSONError(json.Unmarshal(text, &entry))
	}
	return entry.Drawn, err
}

// numbersOf returns those values that are numbers.
func numbersOf(entry map[string]any) map[string]float64 {
	numbers := map[string]float64{}
	for name, v := range entry {
		if x, isNumber := v.(float64); isNumber {
			numbers[name] = x
		}
	}
	return numbers
}

func writeResults(dir string, means, perView any) error {
	if err := atomicfile.WriteJSON(filepath.Join(dir, resultsFile), means, " "); err != nil {
		return err
	}
	return atomicfile.WriteJSON(filepath.Join(dir, perViewFile), perView, " ")
}

// KeepSteps removes from results.json and per_view.json in dir the scores of training steps that are not to be kept.
// Files that have none of these stay as they are.
func KeepSteps(dir string, keep func(step int) bool) error {
	for _, name := range []string{resultsFile, perViewFile} {
		path := filepath.Join(dir, name)
		all, err := readResults(path)
		if err != nil {
			return err
		}
		before := len(all)
		for method := range all {
			if step, is := stepOfMethod(method); is && !keep(step) {
				delete(all, method)
			}
		}
		if len(all) == before {
			continue
		}
		if err := atomicfile.WriteJSON(path, all, " "); err != nil {
			return err
		}
	}
	return nil
}

// stepOfMethod is the step whose MethodName this is.
func stepOfMethod(method string) (step int, is bool) {
	_, err := fmt.Sscanf(method, "ours_%d", &step)
	return step, err == nil && method == MethodName(step)
}

// foreignResults reads a file of scores without those of training steps and of other protocols. A damaged one has none:
// training does not end for that.
func foreignResults(path, protocol string) map[string]any {
	all, err := readResults(path)
	if err != nil {
		return map[string]any{}
	}
	dropOthers(all, protocol)
	for method := range all {
		if _, isStep := stepOfMethod(method); isStep {
			delete(all, method)
		}
	}
	return all
}
