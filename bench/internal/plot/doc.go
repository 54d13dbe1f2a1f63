// Package plot draws curves as SVG.
package plot
