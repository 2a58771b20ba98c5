package pipeline

import (
	"errors"

	"vksplat/vk"
)

// photos hold the training photos for the device: all of them in device memory where they take at most a quarter of the budget, else in a ring that the
// host fills a step ahead.
type photos struct {
	dev      *vk.Device
	views    []TrainView
	resident []vk.Slice[uint32] // per view, see putPhoto
	ring     []vk.Slice[uint32] // per frame in flight, mapped
}

func newPhotos(dev *vk.Device, views []TrainView, inFlight int) (*photos, error) {
	p := &photos{dev: dev, views: views}
	var total int64
	most := 0
	for i := range views {
		n := deviceWords(&views[i].Image)
		total += 4 * int64(n)
		most = max(most, n)
	}
	for range inFlight {
		s, err := vk.Make[uint32](dev, vk.Upload, most, "photo staging")
		if err != nil {
			return nil, err
		}
		p.ring = append(p.ring, s)
	}
	if total > dev.Budget()/4 {
		return p, nil
	}
	return p, p.moveIn()
}

// moveIn uploads every photo.
func (p *photos) moveIn() error {
	for i := range p.views {
		s, err := vk.Make[uint32](p.dev, vk.DeviceLocal, deviceWords(&p.views[i].Image), "photo")
		if err != nil {
			return err
		}
		p.resident = append(p.resident, s)
		r := vk.NewRecorder(p.dev)
		r.Copy(s.View, p.stage(0, i))
		if err := runOnce(p.dev, r, "upload photo"); err != nil {
			return err
		}
	}
	return nil
}

// stage copies photo i to a slot of the ring.
func (p *photos) stage(slot, i int) vk.View {
	v := p.ring[slot].At(0, deviceWords(&p.views[i].Image)).View
	putPhoto(v.Host(), &p.views[i].Image)
	return v
}

// source returns where the device finds photo i for a step on a frame whose last step is done.
func (p *photos) source(slot, i int) vk.View {
	if p.resident != nil {
		return p.resident[i].View
	}
	return p.stage(slot, i)
}

func (p *photos) close() error {
	if err := p.dev.WaitIdle(); err != nil {
		return err
	}
	var err error
	for _, s := range append(p.resident, p.ring...) {
		err = errors.Join(err, p.dev.Free(s.View))
	}
	return err
}
