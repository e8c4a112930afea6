package core

import (
	"crypto/sha256"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// fingerprint returns a digest of all fields of a configuration value, including those
// that encoders omit, such as credentials. Functions are left out. The digest must
// stay secret, because short credentials could be guessed from it.
func fingerprint(v any) []byte {
	sum := sha256.Sum256(appendEncoding(nil, reflect.ValueOf(v)))
	return sum[:]
}

// appendEncoding appends an encoding of v to dst. Different values have different
// encodings.
func appendEncoding(dst []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Invalid:
		return append(dst, "nil;"...)
	case reflect.Pointer, reflect.Interface:
		return appendEncoding(dst, v.Elem())
	case reflect.String:
		return fmt.Appendf(dst, "%d:%s;", v.Len(), v.String())
	case reflect.Bool:
		return fmt.Appendf(dst, "%t;", v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return fmt.Appendf(dst, "%d;", v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return fmt.Appendf(dst, "%d;", v.Uint())
	case reflect.Float32, reflect.Float64:
		return fmt.Appendf(dst, "%v;", v.Float())
	case reflect.Slice, reflect.Array:
		dst = fmt.Appendf(dst, "[%d:", v.Len())
		for i := range v.Len() {
			dst = appendEncoding(dst, v.Index(i))
		}
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		dst = fmt.Appendf(dst, "{%d:", len(keys))
		for _, key := range keys {
			dst = appendEncoding(appendEncoding(dst, key), v.MapIndex(key))
		}
	case reflect.Struct:
		dst = fmt.Appendf(dst, "(%d:", v.NumField())
		for i := range v.NumField() {
			dst = appendEncoding(dst, v.Field(i))
		}
	}
	return dst
}
