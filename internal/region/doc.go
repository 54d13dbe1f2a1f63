// Package region keeps the memory that was registered with a device: what is inside
// is prepared for transfers once, and found by its address. Back ends share it.
package region
