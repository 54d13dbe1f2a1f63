// Package over is what the packages beneath nfcomms have of a Device: its back end, the context of
// its errors, and the times of its calls. Package nfcomms fills it in, and imports none of them.
package over
