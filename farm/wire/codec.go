package wire

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// Messages are structs. A tag gives the number of a field in the wire format, as in `pb:"3"`; fields without one are
// none of it. A field is a string, []byte, bool or int, a message by its pointer, a list of messages, or a map of
// strings or ints to one of these; an int may be of 32 or 64 bits. What a message has beside its fields is passed over.

// numbers are the fields of a message by their numbers.
func numbers(t reflect.Type) map[protowire.Number]int {
	list := map[protowire.Number]int{}
	for i := range t.NumField() {
		if n, err := strconv.Atoi(t.Field(i).Tag.Get("pb")); err == nil {
			list[protowire.Number(n)] = i
		}
	}
	return list
}

// encode writes a message, its fields in the order of their numbers.
func encode(v reflect.Value) (b []byte) {
	fields := numbers(v.Type())
	for _, n := range slices.Sorted(maps.Keys(fields)) {
		if f := v.Field(fields[n]); !f.IsZero() {
			b = appendField(b, n, f)
		}
	}
	return b
}

func appendField(b []byte, n protowire.Number, f reflect.Value) []byte {
	put := func(data []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), data)
	}
	switch f.Kind() {
	case reflect.String:
		return put([]byte(f.String()))
	case reflect.Bool:
		return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), protowire.EncodeBool(f.Bool()))
	case reflect.Int:
		return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), uint64(f.Int()))
	case reflect.Pointer:
		return put(encode(f.Elem()))
	case reflect.Slice:
		if f.Type().Elem().Kind() == reflect.Uint8 {
			return put(f.Bytes())
		}
		for i := range f.Len() {
			b = appendField(b, n, f.Index(i))
		}
		return b
	case reflect.Map:
		for entries := f.MapRange(); entries.Next(); {
			entry := appendField(appendField(nil, 1, entries.Key()), 2, entries.Value())
			b = protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), entry)
		}
		return b
	}
	panic("wire: a message has a field of type " + f.Type().String())
}

// mostDeep bounds how deep messages are in each other: those of a failure's causes.
const mostDeep = 100

var errDeep = errors.New("messages are too deep in each other")

// decode reads a message.
func decode(data []byte, v reflect.Value, deep int) error {
	if deep > mostDeep {
		return errDeep
	}
	fields := numbers(v.Type())
	for len(data) > 0 {
		n, kind, size := protowire.ConsumeTag(data)
		if size < 0 {
			return protowire.ParseError(size)
		}
		value := data[size:]
		if size = protowire.ConsumeFieldValue(n, kind, value); size < 0 {
			return protowire.ParseError(size)
		}
		data = value[size:]
		if i, known := fields[n]; known {
			if err := readField(kind, value[:size], v.Field(i), deep); err != nil {
				return fmt.Errorf("%s: %w", v.Type().Field(i).Name, err)
			}
		}
	}
	return nil
}

// readField reads the value of a field.
func readField(kind protowire.Type, value []byte, f reflect.Value, deep int) error {
	switch kind {
	case protowire.VarintType:
		x, _ := protowire.ConsumeVarint(value) // it was consumed before
		switch f.Kind() {
		case reflect.Int:
			f.SetInt(int64(x))
			return nil
		case reflect.Bool:
			f.SetBool(x != 0)
			return nil
		}
	case protowire.BytesType:
		data, _ := protowire.ConsumeBytes(value) // likewise
		switch f.Kind() {
		case reflect.String:
			f.SetString(string(data))
			return nil
		case reflect.Pointer:
			if f.IsNil() {
				f.Set(reflect.New(f.Type().Elem()))
			}
			return decode(data, f.Elem(), deep+1)
		case reflect.Slice:
			if f.Type().Elem().Kind() == reflect.Uint8 {
				f.SetBytes(slices.Clone(data))
				return nil
			}
			one := reflect.New(f.Type().Elem()).Elem()
			err := readField(kind, value, one, deep)
			f.Set(reflect.Append(f, one))
			return err
		case reflect.Map:
			return readEntry(data, f, deep)
		}
	}
	return fmt.Errorf("it has another type, %d", kind)
}

// readEntry reads an entry of a map.
func readEntry(data []byte, f reflect.Value, deep int) error {
	if f.IsNil() {
		f.Set(reflect.MakeMap(f.Type()))
	}
	entry := []reflect.Value{reflect.New(f.Type().Key()).Elem(), reflect.New(f.Type().Elem()).Elem()}
	if entry[1].Kind() == reflect.Pointer { // an entry without a value has an empty message
		entry[1].Set(reflect.New(f.Type().Elem().Elem()))
	}
	for len(data) > 0 {
		n, kind, size := protowire.ConsumeField(data)
		if size < 0 {
			return protowire.ParseError(size)
		}
		_, _, tag := protowire.ConsumeTag(data)
		if n <= 2 {
			if err := readField(kind, data[tag:size], entry[n-1], deep); err != nil {
				return err
			}
		}
		data = data[size:]
	}
	f.SetMapIndex(entry[0], entry[1])
	return nil
}
