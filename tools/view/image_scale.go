package main

import (
	"context"
	"image"
	"image/draw"
)

// scaleDown returns img scaled down so that its long side has at most side
// pixels (maxImageSide in limits.go), by averaging the area of each new pixel. It works in strips: besides
// the source it needs memory only for the result and a few rows, which the
// scalers of x/image do not guarantee. An image that is small enough is only
// converted. If ctx is cancelled, the rest stays blank.
func scaleDown(ctx context.Context, img image.Image, side int) *image.NRGBA {
	bounds := img.Bounds()
	width, height := bounds.Dx(), bounds.Dy()
	newWidth, newHeight := fitSize(width, height, side)
	out := image.NewNRGBA(image.Rect(0, 0, newWidth, newHeight))
	if newWidth == width && newHeight == height {
		draw.Draw(out, out.Bounds(), img, bounds.Min, draw.Src)
		return out
	}
	// Sums are of premultiplied colours, so that a transparent pixel does
	// not affect the colour of its neighbours.
	const stripRows = 16
	strip := image.NewRGBA(image.Rect(0, 0, width, stripRows))
	line := make([]float32, 4*newWidth)
	sums := make([]float32, 4*newWidth)
	scale := float32(height) / float32(newHeight)
	target := 0 // row of out being summed
	bottom := scale
	for y := range height {
		if y%stripRows == 0 {
			if ctx.Err() != nil {
				return out
			}
			draw.Draw(strip, strip.Bounds(), img, image.Pt(bounds.Min.X, bounds.Min.Y+y), draw.Src)
		}
		averageLine(line, strip.Pix[(y%stripRows)*strip.Stride:][:4*width])
		top, end := float32(y), float32(y+1)
		for {
			share := min(end, bottom) - top
			for i, v := range line {
				sums[i] += v * share
			}
			if end < bottom && y+1 < height {
				break
			}
			if target < newHeight {
				storeLine(out.Pix[target*out.Stride:][:4*newWidth], sums, scale)
			}
			clear(sums)
			target++
			top, bottom = bottom, float32(target+1)*scale
			if top >= end || target >= newHeight {
				break
			}
		}
	}
	return out
}

// fitSize scales a size down so that the long side is at most side, and keeps
// the proportions.
func fitSize(width, height, side int) (newWidth, newHeight int) {
	long := max(width, height)
	if long <= side {
		return width, height
	}
	scaled := func(n int) int { return max(1, int((int64(n)*int64(side)+int64(long)/2)/int64(long))) }
	return scaled(width), scaled(height)
}

// averageLine writes the averages of src (RGBA) into dst, four values per
// pixel.
func averageLine(dst []float32, src []byte) {
	width, newWidth := len(src)/4, len(dst)/4
	scale := float32(width) / float32(newWidth)
	for x := range newWidth {
		from, to := float32(x)*scale, float32(x+1)*scale
		var sum [4]float32
		for i := int(from); i < width && float32(i) < to; i++ {
			share := min(to, float32(i+1)) - max(from, float32(i))
			pixel := src[4*i : 4*i+4 : 4*i+4]
			sum[0] += share * float32(pixel[0])
			sum[1] += share * float32(pixel[1])
			sum[2] += share * float32(pixel[2])
			sum[3] += share * float32(pixel[3])
		}
		for c := range sum {
			dst[4*x+c] = sum[c] / scale
		}
	}
}

// storeLine converts premultiplied sums over rows of the given total height to
// non-premultiplied colours.
func storeLine(dst []byte, sums []float32, height float32) {
	for x := 0; x < len(sums); x += 4 {
		alpha := sums[x+3]
		if alpha <= 0 {
			clear(dst[x : x+4])
			continue
		}
		for c := range 3 {
			dst[x+c] = byte(min(255, sums[x+c]*255/alpha+0.5))
		}
		dst[x+3] = byte(min(255, alpha/height+0.5))
	}
}

// onWhite draws the image on a white background, since JPEG has no
// transparency.
func onWhite(img *image.NRGBA) image.Image {
	if img.Opaque() {
		// The same bytes in a type that the encoder handles faster.
		return &image.RGBA{Pix: img.Pix, Stride: img.Stride, Rect: img.Rect}
	}
	flat := image.NewRGBA(img.Bounds())
	draw.Draw(flat, flat.Bounds(), image.White, image.Point{}, draw.Src)
	draw.Draw(flat, flat.Bounds(), img, img.Bounds().Min, draw.Over)
	return flat
}

// orientedSize returns the size after orientImage. orientation is the EXIF orientation, 1
// to 8.
func orientedSize(width, height, orientation int) (newWidth, newHeight int) {
	if orientation >= 5 {
		return height, width
	}
	return width, height
}

// orientImage mirrors and rotates an image according to its EXIF orientation (1
// to 8), so that it is upright.
func orientImage(img *image.NRGBA, orientation int) *image.NRGBA {
	if orientation <= 1 || orientation > 8 {
		return img
	}
	width, height := img.Bounds().Dx(), img.Bounds().Dy()
	newWidth, newHeight := orientedSize(width, height, orientation)
	out := image.NewNRGBA(image.Rect(0, 0, newWidth, newHeight))
	for y := range newHeight {
		for x := range newWidth {
			var sx, sy int
			switch orientation {
			case 2:
				sx, sy = width-1-x, y
			case 3:
				sx, sy = width-1-x, height-1-y
			case 4:
				sx, sy = x, height-1-y
			case 5:
				sx, sy = y, x
			case 6:
				sx, sy = y, height-1-x
			case 7:
				sx, sy = width-1-y, height-1-x
			case 8:
				sx, sy = width-1-y, x
			}
			copy(out.Pix[y*out.Stride+4*x:][:4], img.Pix[sy*img.Stride+4*sx:][:4])
		}
	}
	return out
}
