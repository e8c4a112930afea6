package main

import (
	"encoding/binary"
	"image"
	"image/color"
	"math"
)

// maxDecodedSize returns an upper bound of the memory for decoding an image, in
// bytes, from its headers alone. For a progressive JPEG this includes the
// coefficients that its decoder keeps. For more pixels than maxDecodedBytes, and for a
// size that no image has, it returns math.MaxInt64.
func maxDecodedSize(config image.Config, data []byte, format string) int64 {
	if config.Width <= 0 || config.Height <= 0 || config.Width > math.MaxInt32 || config.Height > math.MaxInt32 {
		return math.MaxInt64
	}
	pixels := int64(config.Width) * int64(config.Height)
	if pixels > maxDecodedBytes {
		return math.MaxInt64
	}
	perPixel := int64(4)
	switch config.ColorModel {
	case color.RGBA64Model, color.NRGBA64Model:
		perPixel = 8
	case color.Gray16Model:
		perPixel = 2
	case color.GrayModel:
		perPixel = 1
	}
	if _, ok := config.ColorModel.(color.Palette); ok {
		perPixel = 1
	}
	if format == "jpeg" {
		return pixels * readJPEGHeader(data).eighths / 8
	}
	return pixels * perPixel
}

// jpegHeader holds information from the segments before a JPEG's pixels: how to
// turn and decode it.
type jpegHeader struct {
	orientation int   // EXIF, 1 (upright) to 8
	eighths     int64 // memory for decoding, in eighths of a byte per pixel
}

// readJPEGHeader returns the orientation and the memory for decoding from the
// segments before the pixels, without decoding these. For missing or damaged
// segments it returns the defaults: upright, and the largest memory per pixel.
func readJPEGHeader(data []byte) jpegHeader {
	header := jpegHeader{orientation: 1, eighths: 8 * (4 + 4*4)}
	for pos := 2; pos+4 <= len(data); {
		if data[pos] != 0xff {
			return header
		}
		marker := data[pos+1]
		if marker == 0xff { // fill byte
			pos++
			continue
		}
		length := int(binary.BigEndian.Uint16(data[pos+2:]))
		if marker == 0xda || length < 2 || pos+2+length > len(data) {
			return header
		}
		body := data[pos+4 : pos+2+length]
		switch {
		case marker == 0xe1 && len(body) > 6 && string(body[:6]) == "Exif\x00\x00":
			header.orientation = exifOrientation(body[6:])
		case marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc:
			header.eighths = jpegPixelCost(body, marker == 0xc2)
		}
		pos += 2 + length
	}
	return header
}

// jpegPixelCost returns the decoding cost from a frame header, in eighths of a
// byte per pixel: one byte per sample, and four more if a progressive image
// keeps all coefficients until the end.
func jpegPixelCost(frame []byte, progressive bool) int64 {
	if len(frame) < 6 || len(frame) < 6+3*int(frame[5]) {
		return 8 * (4 + 4*4)
	}
	var widest, tallest, samples int64 = 1, 1, 0
	count := int(frame[5])
	for i := range count {
		widest = max(widest, int64(frame[7+3*i]>>4))
		tallest = max(tallest, int64(frame[7+3*i]&15))
	}
	for i := range count {
		samples += 8 * int64(frame[7+3*i]>>4) * int64(frame[7+3*i]&15) / (widest * tallest)
	}
	if count >= 4 { // Adobe's inverted CMYK is copied once more
		samples += 8 * 4
	}
	if progressive {
		return samples * 5
	}
	return max(samples, 8)
}

// exifOrientation returns the value of tag 0x0112 in the first directory of a
// TIFF block, or 1.
func exifOrientation(block []byte) int {
	if len(block) < 8 {
		return 1
	}
	var order binary.ByteOrder = binary.LittleEndian
	if block[0] == 'M' {
		order = binary.BigEndian
	}
	start := int64(order.Uint32(block[4:]))
	if start+2 > int64(len(block)) {
		return 1
	}
	entries := int64(order.Uint16(block[start:]))
	for i := range entries {
		at := start + 2 + 12*i
		if at+12 > int64(len(block)) {
			return 1
		}
		if order.Uint16(block[at:]) == 0x0112 {
			if value := int(order.Uint16(block[at+8:])); value >= 1 && value <= 8 {
				return value
			}
			return 1
		}
	}
	return 1
}
