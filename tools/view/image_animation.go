package main

import "encoding/binary"

// isAnimatedGIF reports whether a GIF has more than one image. It decodes none.
func isAnimatedGIF(data []byte) bool {
	if len(data) < 13 {
		return false
	}
	pos := 13
	if data[10]&0x80 != 0 {
		pos += 3 << (1 + data[10]&7)
	}
	frames := 0
	for pos < len(data) && frames < 2 {
		switch data[pos] {
		case 0x21: // extension: label, then sub-blocks
			pos = skipGIFBlocks(data, pos+2)
		case 0x2c:
			frames++
			if pos+9 >= len(data) {
				return frames > 1
			}
			table := 0
			if data[pos+9]&0x80 != 0 {
				table = 3 << (1 + data[pos+9]&7)
			}
			pos = skipGIFBlocks(data, pos+10+table+1)
		default:
			return frames > 1
		}
	}
	return frames > 1
}

// skipGIFBlocks returns the position after the sub-blocks at pos.
func skipGIFBlocks(data []byte, pos int) int {
	for pos < len(data) && data[pos] != 0 {
		pos += int(data[pos]) + 1
	}
	return pos + 1
}

// firstWebPFrame returns the first frame of an animation as a still WebP,
// because the decoder supports only stills. ok is false for a still image, and
// for inconsistent chunks, whose error the decoder reports.
func firstWebPFrame(data []byte) (still []byte, ok bool) {
	frame, ok := riffChunk(data, 12, "ANMF")
	if !ok || len(frame) < 16 {
		return nil, false
	}
	body := frame[16:]
	var chunks []byte
	if alpha, ok := riffChunk(body, 0, "ALPH"); ok {
		// Extended header: the alpha flag, and the frame's size minus
		// one.
		header := append([]byte{0x10, 0, 0, 0}, frame[6:12]...)
		chunks = appendRIFFChunk(appendRIFFChunk(nil, "VP8X", header), "ALPH", alpha)
	}
	for _, kind := range []string{"VP8 ", "VP8L"} {
		if pixels, ok := riffChunk(body, 0, kind); ok {
			chunks = appendRIFFChunk(chunks, kind, pixels)
			still = binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(4+len(chunks)))
			return append(append(still, "WEBP"...), chunks...), true
		}
	}
	return nil, false
}

// riffChunk returns the body of the first chunk of a kind at or after pos. It
// returns false if no such chunk follows, or if the chunks before it are
// damaged.
func riffChunk(data []byte, pos int, kind string) ([]byte, bool) {
	for pos+8 <= len(data) {
		size := int64(binary.LittleEndian.Uint32(data[pos+4:]))
		end := int64(pos) + 8 + size
		if end > int64(len(data)) {
			return nil, false
		}
		if string(data[pos:pos+4]) == kind {
			return data[pos+8 : end], true
		}
		pos = int(end + size&1)
	}
	return nil, false
}

// appendRIFFChunk appends a chunk with its header and padding to a RIFF file.
func appendRIFFChunk(to []byte, kind string, body []byte) []byte {
	to = binary.LittleEndian.AppendUint32(append(to, kind...), uint32(len(body)))
	to = append(to, body...)
	if len(body)%2 == 1 {
		to = append(to, 0)
	}
	return to
}
