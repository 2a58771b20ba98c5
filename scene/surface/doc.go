// Package surface makes a mesh of depth maps: a truncated signed distance in the voxels around what the maps show
// (Curless and Levoy, "A Volumetric Method for Building Complex Models from Range Images", 1996), and of its zero a net
// of quads (Gibson, "Constrained Elastic Surface Nets", 1998, without the relaxation). It knows cameras and pictures,
// and no splats.
//
// Survey collects where surfaces are, Fuse measures distances there, slab by slab of what memory holds, and Mesh is
// what comes out, of which Simplify drops the faces that say next to nothing. The same maps give the same mesh,
// whatever the number of cores and the size of the slabs.
package surface
