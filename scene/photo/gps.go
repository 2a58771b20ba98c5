package photo

import "math"

// Tags of EXIF about the place.
const (
	tagGPS       = 0x8825
	tagSouth     = 1
	tagLatitude  = 2
	tagWest      = 3
	tagLongitude = 4
	tagBelow     = 5
	tagAltitude  = 6
)

// Position is a place by GPS (WGS 84).
type Position struct {
	Latitude, Longitude float64 // degrees to the north and to the east
	Altitude            float64 // metres; NaN: it is not known
}

// TakenAt returns where a photo was taken, as EXIF has it; known is false where it does not say, or 0 degrees twice,
// which receivers write that have found nothing.
func TakenAt(path string) (p Position, known bool) {
	data := exifAt(path)
	first, _ := tiffFolders(data)
	order, at := byteOrder(data), fraction(first[tagGPS])
	if order == nil || at == 0 {
		return p, false
	}
	tags := exifTags(data, order, uint32(at))
	latitude, okLatitude := degrees(tags[tagLatitude], 90)
	longitude, okLongitude := degrees(tags[tagLongitude], 180)
	p = Position{latitude, longitude, math.NaN()}
	if tags[tagSouth] == "S" {
		p.Latitude *= -1
	}
	if tags[tagWest] == "W" {
		p.Longitude *= -1
	}
	if height, ok := fractions(tags[tagAltitude], 1); ok {
		if p.Altitude = height[0]; tags[tagBelow] == "1" {
			p.Altitude *= -1
		}
	}
	return p, okLatitude && okLongitude && (p.Latitude != 0 || p.Longitude != 0)
}

// degrees reads degrees, minutes and seconds.
func degrees(text string, most float64) (sum float64, ok bool) {
	parts, ok := fractions(text, 3)
	if !ok {
		return 0, false
	}
	sum = parts[0] + parts[1]/60 + parts[2]/3600
	return sum, sum <= most
}
