package main

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// bill is a bill of materials by CycloneDX 1.6.
type bill struct {
	Format      string `json:"bomFormat"`
	SpecVersion string `json:"specVersion"`
	Version     int    `json:"version"`
	Metadata    struct {
		Timestamp time.Time `json:"timestamp"`
		Component *part     `json:"component"`
	} `json:"metadata"`
	Components []*part `json:"components"`
}

type part struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// newBill begins the bill of something.
func newBill(kind, name string, of stamp) *bill {
	b := &bill{Format: "CycloneDX", SpecVersion: "1.6", Version: 1, Components: []*part{}}
	b.Metadata.Timestamp = of.time
	b.Metadata.Component = &part{Type: kind, Ref: name + "@" + of.version, Name: name, Version: of.version,
		Properties: []property{{"vksplat:commit", of.commit}}}
	return b
}

// add lists a component once.
func (b *bill) add(c *part) *part {
	if i := slices.IndexFunc(b.Components, func(x *part) bool { return x.Ref == c.Ref }); i >= 0 {
		return b.Components[i]
	}
	b.Components = append(b.Components, c)
	return c
}

func (b *bill) sort() *bill {
	slices.SortFunc(b.Components, func(x, y *part) int { return cmp.Compare(x.Ref, y.Ref) })
	return b
}

// programBill lists what is linked into the programs of a component, by what they say of themselves: Go and its
// modules, and for which systems.
func programBill(of stamp, name string, programs []program) *bill {
	b := newBill("application", name, of)
	for _, p := range programs {
		system := property{"vksplat:in", p.os + "/" + p.arch}
		b.addModule("std", strings.TrimPrefix(p.info.GoVersion, "go"), "", system)
		for _, m := range p.info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			if m.Path != "vksplat" && !strings.HasPrefix(m.Path, ".") { // it is this repository
				b.addModule(m.Path, m.Version, m.Sum, system)
			}
		}
	}
	return b
}

// addViewer lists the viewer that is embedded.
func (b *bill) addViewer(version string) {
	b.add(&part{Type: "library", Ref: "supersplat-viewer", Name: "SuperSplat viewer", Version: version})
}

// addModule lists a Go module that is in the program for a system.
func (b *bill) addModule(path, version, sum string, in property) {
	name := fmt.Sprintf("pkg:golang/%s@%s", strings.ToLower(path), url.QueryEscape(version))
	c := &part{Type: "library", Ref: name, Name: path, Version: version, PURL: name}
	if sum != "" {
		c.Properties = []property{{"vksplat:go.sum", sum}}
	}
	c = b.add(c)
	c.Properties = append(c.Properties, in)
}

// debianPackage is an entry of dpkg's list.
type debianPackage struct{ name, version, arch string }

// packagesOf reads dpkg's list.
func packagesOf(status string) (list []debianPackage) {
	for entry := range strings.SplitSeq(status, "\n\n") {
		var p debianPackage
		for line := range strings.SplitSeq(entry, "\n") {
			switch key, value, _ := strings.Cut(line, ": "); key {
			case "Package":
				p.name = value
			case "Version":
				p.version = value
			case "Architecture":
				p.arch = value
			}
		}
		if p.name != "" {
			list = append(list, p)
		}
	}
	return list
}

// imageBill lists what is in the container image: Debian's packages and the program.
func imageBill(of stamp, p program, packages []debianPackage) *bill {
	b := newBill("container", "vksplat-image", of)
	for _, d := range packages {
		name := fmt.Sprintf("pkg:deb/debian/%s@%s?arch=%s&distro=%s", d.name, url.QueryEscape(d.version), d.arch, suite)
		b.add(&part{Type: "library", Ref: name, Name: d.name, Version: d.version, PURL: name})
	}
	b.add(&part{Type: "application", Ref: "vksplat", Name: "vksplat", Version: of.version,
		Properties: []property{{"vksplat:commit", of.commit}, {"vksplat:go", p.info.GoVersion}}})
	return b.sort()
}
