package metashape

import (
	"strings"
	"testing"

	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/scenetest"
)

func FuzzParse(f *testing.F) {
	scenetest.FuzzRecords(f, "testdata/small/cameras.xml", func(data []byte) ([]scene.Record, error) {
		d, err := parse(data)
		if err != nil {
			return nil, err
		}
		c := &scene.Capture{}
		k, err := d.choose(c)
		if err != nil {
			return nil, err
		}
		records, _, err := k.records(c)
		return records, err
	})
}

// The cameras of groups in groups are not copied at each level.
func TestDeepGroups(t *testing.T) {
	const deep = 2000
	d, err := parse([]byte("<document><chunk><cameras>" + strings.Repeat("<group>", deep) +
		strings.Repeat(`<camera label="a"/>`, deep) + strings.Repeat("</group>", deep) + "</cameras></chunk></document>"))
	if err != nil {
		t.Fatal(err)
	}
	allocated := filetest.Allocated()
	cams := d.Chunks[0].Cameras.all(nil)
	if used := allocated(); len(cams) != deep || used > 16<<20 {
		t.Errorf("%d cameras take %d MB", len(cams), used>>20)
	}
}

// The pose of a photo without one is that of the camera it names, moved by how the sensors of both stand on the rig:
// that camera need not be of the sensor that the others are measured from.
func TestRig(t *testing.T) {
	d, err := parse([]byte(`<document><chunk><sensors>
		<sensor id="7"><calibration><resolution width="40" height="30"/><f>30</f></calibration></sensor>
		<sensor id="8" master_id="7"><calibration><resolution width="40" height="30"/><f>30</f></calibration>
			<rotation>0 -1 0 1 0 0 0 0 1</rotation><location>1 0 0</location></sensor>
		<sensor id="9" master_id="7"><calibration><resolution width="40" height="30"/><f>30</f></calibration>
			<location>0 2 0</location></sensor></sensors>
		<components><component id="0"><transform><scale>10</scale></transform></component></components>
		<cameras><camera id="1" sensor_id="9" master_id="0" label="slave"/>
		<camera id="0" sensor_id="8" component_id="0" label="posed">
			<transform>1 0 0 5 0 1 0 0 0 0 1 0 0 0 0 1</transform></camera>
		<camera id="2" sensor_id="9" master_id="3" label="alone"/><camera id="3" sensor_id="8" label="lost"/>
		</cameras></chunk></document>`))
	must.Do(t, err)
	var c scene.Capture
	records, _, err := d.Chunks[0].records(&c)
	if err != nil || len(records) != 2 || len(c.Warnings) != 1 || c.Warnings[0].Count != 2 {
		t.Fatal(err, records, c.Warnings)
	}
	// Sensor 9 has the master's axes. Seen from sensor 8, whose x is the master's y, it stands at (2, 1, 0).
	slave := records[0].Cam
	scenetest.IsAt(t, "centre", slave.Center(), [3]float64{70, 10, 0}, 1e-12)
	scenetest.IsAt(t, "master's x", slave.ToCamera([3]float64{70, 9, 0}), [3]float64{1, 0, 0}, 1e-12)
	scenetest.IsAt(t, "posed", records[1].Cam.Center(), [3]float64{50, 0, 0}, 1e-12)
}

// A camera without a pose that names no other has none, also beside one without an id.
func TestNoMaster(t *testing.T) {
	d, err := parse([]byte(`<document><chunk><sensors><sensor id="7"><calibration><resolution width="40" height="30"/>
		<f>30</f></calibration></sensor></sensors><cameras><camera sensor_id="7" label="posed">
		<transform>1 0 0 5 0 1 0 0 0 0 1 0 0 0 0 1</transform></camera><camera id="1" sensor_id="7" label="alone"/>
		</cameras></chunk></document>`))
	must.Do(t, err)
	var c scene.Capture
	records, _, err := d.Chunks[0].records(&c)
	if err != nil || len(records) != 1 || len(c.Warnings) != 1 || c.Warnings[0].Count != 1 {
		t.Fatal(err, records, c.Warnings)
	}
}

// A pose from a rig needs the sensor that all others are measured from; a camera with a pose of its own does not.
func TestLostMaster(t *testing.T) {
	const sensors = `<document><chunk><sensors><sensor id="7" master_id="99"><calibration>
		<resolution width="40" height="30"/><f>30</f></calibration><location>1 0 0</location></sensor></sensors><cameras>
		<camera id="0" sensor_id="7" label="posed"><transform>1 0 0 5 0 1 0 0 0 0 1 0 0 0 0 1</transform></camera>`
	for slave, want := range map[string]string{"": "", `<camera id="1" sensor_id="7" master_id="0" label="slave"/>`: `camera "slave" has its pose from a rig whose master_id "99" no sensor has`} {
		d, err := parse([]byte(sensors + slave + "</cameras></chunk></document>"))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err = d.Chunks[0].records(&scene.Capture{}); want == "" && err != nil || want != "" && (err == nil ||
			err.Error() != want) {
			t.Errorf("%q: %v", slave, err)
		}
	}
}
