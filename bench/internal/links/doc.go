// Package links measures a link of the fabric, and nodes of a torus in this process.
package links
