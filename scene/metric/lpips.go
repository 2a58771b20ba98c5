package metric

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"vksplat/internal/fault"
	"vksplat/scene/safetensors"
)

// LPIPS (Zhang et al. 2018, The Unreasonable Effectiveness of Deep Features as a Perceptual Metric, version 0.1): two
// pictures are alike where the features that an image network finds in them are. The networks are AlexNet (Krizhevsky
// 2014) and VGG16 (Simonyan and Zisserman 2014) as torchvision has them, up to their last ReLU of the convolutions.

// Names of the networks.
const (
	LPIPSAlex = "alex"
	LPIPSVGG  = "vgg"
)

// LPIPSLayer is a convolution with bias and ReLU, or a maximum over windows.
type LPIPSLayer struct {
	Pool              bool
	Side, Stride, Pad int // of the kernel or window, in pixels of the input
	In, Out           int // channels
	Compared          bool
	index             int // among torchvision's features
}

// Rows returns the height, or the width, of the layer's output for that of an input; not above 0 where no
// window fits in.
func (l LPIPSLayer) Rows(in int) int {
	if in+2*l.Pad < l.Side {
		return 0
	}
	return (in+2*l.Pad-l.Side)/l.Stride + 1
}

// Numbers returns how many weights the layer has.
func (l LPIPSLayer) Numbers() (n int) {
	if !l.Pool {
		n = l.Out * (l.In*l.Side*l.Side + 1)
	}
	if l.Compared {
		n += l.Out
	}
	return n
}

// LPIPSLayers returns the layers of a network, or nil for a name that is none.
func LPIPSLayers(net string) []LPIPSLayer {
	conv := func(index, side, stride, in, out int) LPIPSLayer {
		return LPIPSLayer{Side: side, Stride: stride, Pad: side / 2, In: in, Out: out, index: index}
	}
	compared := func(l LPIPSLayer) LPIPSLayer {
		l.Compared = true
		return l
	}
	pool := func(side, channels int) LPIPSLayer {
		return LPIPSLayer{Pool: true, Side: side, Stride: 2, In: channels, Out: channels}
	}
	switch net {
	case LPIPSAlex:
		first := compared(conv(0, 11, 4, 3, 64))
		first.Pad = 2
		return []LPIPSLayer{
			first, pool(3, 64), compared(conv(3, 5, 1, 64, 192)), pool(3, 192),
			compared(conv(6, 3, 1, 192, 384)), compared(conv(8, 3, 1, 384, 256)), compared(conv(10, 3, 1, 256, 256)),
		}
	case LPIPSVGG:
		return []LPIPSLayer{
			conv(0, 3, 1, 3, 64), compared(conv(2, 3, 1, 64, 64)), pool(2, 64),
			conv(5, 3, 1, 64, 128), compared(conv(7, 3, 1, 128, 128)), pool(2, 128),
			conv(10, 3, 1, 128, 256), conv(12, 3, 1, 256, 256), compared(conv(14, 3, 1, 256, 256)), pool(2, 256),
			conv(17, 3, 1, 256, 512), conv(19, 3, 1, 512, 512), compared(conv(21, 3, 1, 512, 512)), pool(2, 512),
			conv(24, 3, 1, 512, 512), conv(26, 3, 1, 512, 512), compared(conv(28, 3, 1, 512, 512)),
		}
	}
	return nil
}

// LPIPSWeights are the numbers of a network and of the comparison.
type LPIPSWeights struct {
	Net    string // LPIPSAlex or LPIPSVGG
	SHA256 string // of the file, in hexadecimal: it belongs beside every score
	// By layer; nil for what has none.
	Kernels  [][]float32 // [Out][In][Side][Side] of convolutions
	Biases   [][]float32 // [Out]
	Channels [][]float32 // [Out] of compared layers: the weights of the channels in the comparison, not negative
}

const (
	readLPIPS = "read LPIPS weights"
	lpipsHint = "docs/eval.md shows how tools/lpips_weights.py makes the file"
)

// ReadLPIPSWeights reads the weights of a network from a safetensors file with the names that torchvision and lpips
// publish: features.0.weight, features.0.bias and so on, lin0.model.1.weight to lin4.model.1.weight. The net "" is
// whichever the file holds. Tensors of other names are passed over. Errors say which tensor is at fault, and name the
// script that makes such files.
func ReadLPIPSWeights(path, net string) (*LPIPSWeights, error) {
	file, err := safetensors.Open(path)
	var w *LPIPSWeights
	if err == nil {
		w, err = readLPIPSWeights(file, net)
		err = errors.Join(err, file.Close())
	}
	if err == nil {
		return w, nil
	}
	out := &fault.Error{Op: readLPIPS, Path: path, Err: fault.TrimPath(err), Hint: lpipsHint}
	if inner, ok := err.(*fault.Error); ok { // of OpenSafetensors
		out.Err, out.Kind = inner.Err, inner.Kind
		if errors.Is(err, os.ErrPermission) {
			out.Hint = inner.Hint
		}
	}
	return nil, out
}

func readLPIPSWeights(file *safetensors.File, net string) (w *LPIPSWeights, err error) {
	if net, err = lpipsNet(file, net); err != nil {
		return nil, err
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, io.NewSectionReader(file.R, 0, file.Length)); err != nil {
		return nil, err
	}
	layers := LPIPSLayers(net)
	w = &LPIPSWeights{Net: net, SHA256: hex.EncodeToString(hash.Sum(nil)), Kernels: make([][]float32, len(layers)),
		Biases:   make([][]float32, len(layers)),
		Channels: make([][]float32, len(layers))}
	compared := 0
	for i, l := range layers {
		if !l.Pool {
			name := fmt.Sprintf("features.%d.", l.index)
			if w.Kernels[i], err = file.Floats(name+"weight", l.Out, l.In, l.Side, l.Side); err != nil {
				return nil, err
			}
			if w.Biases[i], err = file.Floats(name+"bias", l.Out); err != nil {
				return nil, err
			}
		}
		if l.Compared {
			name := fmt.Sprintf("lin%d.model.1.weight", compared)
			if w.Channels[i], err = file.Floats(name, 1, l.Out, 1, 1); err != nil {
				return nil, err
			}
			if at := slices.IndexFunc(w.Channels[i], func(x float32) bool { return x < 0 }); at >= 0 {
				return nil, fmt.Errorf("tensor %q: number %d is %g, no weight of a channel is negative", name, at,
					w.Channels[i][at])
			}
			compared++
		}
		for _, numbers := range [][]float32{w.Kernels[i], w.Channels[i]} {
			if numbers != nil && !slices.ContainsFunc(numbers, func(x float32) bool { return x != 0 }) {
				return nil, fmt.Errorf("layer %d holds nothing but zeros: it cannot tell pictures apart", i)
			}
		}
	}
	return w, nil
}

// lpipsNet returns the network whose first convolution a file holds, which must be net unless that is "".
func lpipsNet(file *safetensors.File, net string) (string, error) {
	if net != "" && LPIPSLayers(net) == nil {
		return "", fmt.Errorf("there is no network %q: %s or %s", net, LPIPSAlex, LPIPSVGG)
	}
	const name = "features.0.weight"
	t, ok := file.Lookup(name)
	if !ok {
		return "", fmt.Errorf("tensor %q is missing", name)
	}
	var shapes []string
	for _, n := range []string{LPIPSAlex, LPIPSVGG} {
		l := LPIPSLayers(n)[0]
		shape := []int{l.Out, l.In, l.Side, l.Side}
		if slices.Equal(t.Shape, shape) {
			if net != "" && net != n {
				return "", fmt.Errorf("tensor %q is %v: these are the weights of %s, not of %s", name, t.Shape, n, net)
			}
			return n, nil
		}
		shapes = append(shapes, fmt.Sprintf("%v (%s)", shape, n))
	}
	return "", fmt.Errorf("tensor %q is %v, not %s", name, t.Shape, strings.Join(shapes, " or "))
}
