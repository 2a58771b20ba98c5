// Package transforms reads transforms.json in the dialects of nerfstudio, instant-ngp and Blender's synthetic scenes.
package transforms
