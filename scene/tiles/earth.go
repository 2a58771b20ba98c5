package tiles

import "math"

// The ellipsoid of WGS 84 (EPSG 7030): half of its longer axis in metres, and its flattening.
const (
	equator    = 6378137.0
	flattening = 1 / 298.257223563
)

// Place is where on Earth the zero point of a model is, whose unit is the metre and whose -y is up.
type Place struct {
	Latitude, Longitude float64 // degrees, north and east
	Height              float64 // metres above the ellipsoid
	Heading             float64 // degrees clockwise from north, of where z points
}

// Transform takes the z-up frame of a tileset to the one that turns with Earth (ECEF, metres), column after column.
func (p Place) Transform() *[16]float64 {
	lat, lon, heading := radians(p.Latitude), radians(p.Longitude), radians(p.Heading)
	sinLat, cosLat := math.Sincos(lat)
	sinLon, cosLon := math.Sincos(lon)
	east := [3]float64{-sinLon, cosLon, 0}
	north := [3]float64{-sinLat * cosLon, -sinLat * sinLon, cosLat}
	up := [3]float64{cosLat * cosLon, cosLat * sinLon, sinLat}
	// The model's z is -y of the tileset, its x is -x: see ZUp.
	sin, cos := math.Sincos(heading)
	squared := flattening * (2 - flattening) // of the eccentricity
	bow := equator / math.Sqrt(1-squared*sinLat*sinLat)
	var m [16]float64
	for k := range 3 {
		m[k] = -cos*east[k] + sin*north[k]
		m[4+k] = -sin*east[k] - cos*north[k]
		m[8+k] = up[k]
		m[12+k] = (bow + p.Height) * up[k]
	}
	m[14] -= squared * bow * sinLat
	m[15] = 1
	return &m
}

// Moved is the transform of a tileset that is only moved, in the frame of captures.
func Moved(by [3]float64) *[16]float64 {
	t := ZUp(by)
	return &[16]float64{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, t[0], t[1], t[2], 1}
}

func radians(degrees float64) float64 { return degrees * math.Pi / 180 }
