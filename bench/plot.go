package main

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"os"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

const (
	plotColumns = 3
	tileWidth   = 9 * vg.Centimeter
	barWidth    = vg.Length(9)
	tileExtra   = 2.2 * vg.Centimeter // title and axis
	plotPad     = vg.Centimeter / 2

	plotFont = "font-family:Liberation Serif" // as the library formats it
	// with letters of the same width, for systems without it
	plotFontsAlike = ",Times New Roman,Times,serif"
)

var (
	ourColour   = color.NRGBA{R: 0xd9, G: 0x48, B: 0x0f, A: 0xff}
	floorColour = color.NRGBA{R: 0xad, G: 0xb5, B: 0xbd, A: 0xff}
	peerColour  = color.NRGBA{R: 0x4c, G: 0x6e, B: 0xf5, A: 0xff}
)

// plotRows draws the headline figure of each workload as bars, a tile for each workload and number
// of callers, into an SVG file. Rows that failed have no bar.
func plotRows(rows []row, file string) error {
	tiles, most, err := plotTiles(rows)
	if err != nil {
		return err
	}
	height := vg.Length(most)*barWidth*1.6 + tileExtra
	canvas := vgsvg.New(plotColumns*tileWidth, vg.Length(len(tiles))*height)
	white := draw.New(canvas)
	white.SetColor(color.White)
	white.Fill(white.Rectangle.Path())
	grid := draw.Tiles{
		Rows: len(tiles), Cols: plotColumns, PadX: plotPad, PadY: plotPad, PadTop: plotPad, PadLeft: plotPad, PadRight: plotPad,
	}
	for y, line := range plot.Align(tiles, grid, draw.New(canvas)) {
		for x, c := range line {
			if tiles[y][x] != nil {
				tiles[y][x].Draw(c)
			}
		}
	}
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return err
	}
	return os.WriteFile(file, bytes.ReplaceAll(svg.Bytes(), []byte(plotFont), []byte(plotFont+plotFontsAlike)), 0o644)
}

// plotTiles returns a plot for each workload and number of callers, line by line, and the maximum
// number of bars in one.
func plotTiles(rows []row) (tiles [][]*plot.Plot, most int, err error) {
	n := 0
	for _, w := range workloads() {
		for _, callers := range w.callers {
			var bars []row
			for _, r := range rows {
				if r.Workload == w.name && r.Callers == callers && w.headline(&r).known() {
					bars = append(bars, r)
				}
			}
			if len(bars) == 0 {
				continue
			}
			p, err := plotTile(w, callers, bars)
			if err != nil {
				return nil, 0, err
			}
			if n%plotColumns == 0 {
				tiles = append(tiles, make([]*plot.Plot, plotColumns))
			}
			tiles[n/plotColumns][n%plotColumns] = p
			most = max(most, len(bars))
			n++
		}
	}
	if n == 0 {
		return nil, 0, fmt.Errorf("there is nothing to draw: all rows failed")
	}
	return tiles, most, nil
}

// plotTile returns one plot, with a bar for each of rows, the first one on top.
func plotTile(w *workload, callers int, rows []row) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = w.name
	if len(w.callers) > 1 {
		p.Title.Text += fmt.Sprintf(" × %s", thousands(int64(callers)))
	}
	p.Title.Padding, p.Y.Padding = plotPad/4, plotPad/4
	p.X.Label.Text = w.unit
	if w.less {
		p.X.Label.Text += " (less is better)"
	}
	p.X.Min = 0
	p.X.Tick.Marker = fewTicks{}
	var names []string
	for i, r := range rows {
		y := len(rows) - 1 - i
		bar, err := plotter.NewBarChart(plotter.Values{float64(w.headline(&r))}, barWidth)
		if err != nil {
			return nil, err
		}
		bar.Horizontal, bar.XMin, bar.Color, bar.LineStyle.Width = true, float64(y), colourOf(r.Impl), 0
		p.Add(bar)
		names = append([]string{r.Impl}, names...)
	}
	p.NominalY(names...)
	return p, nil
}

func colourOf(impl string) color.Color {
	switch {
	case isOurs(impl):
		return ourColour
	case isFloor(impl):
		return floorColour
	}
	return peerColour
}

// fewTicks limits the ticks of an axis to the room for numbers.
type fewTicks struct{}

// Ticks implements plot.Ticker.
func (fewTicks) Ticks(low, high float64) []plot.Tick {
	step := math.Pow(10, math.Floor(math.Log10(high-low)))
	for (high-low)/step < 2 {
		step /= 2
	}
	for (high-low)/step > 4 {
		step *= 2
	}
	var ticks []plot.Tick
	for v := low; v <= high; v += step {
		ticks = append(ticks, plot.Tick{Value: v, Label: short(v)})
	}
	return ticks
}

// short returns v with as few characters as an axis has room for.
func short(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%gM", v/1e6)
	case v >= 1e3:
		return fmt.Sprintf("%gk", v/1e3)
	}
	return fmt.Sprintf("%g", v)
}
