//go:build !vulkango

package vk

import vulkan "github.com/goki/vulkan"

// BackEnd names the binding that this program was built with.
const BackEnd = "github.com/goki/vulkan"

// sizeT is how the binding writes C's size_t.
type sizeT = uint64

// The names of the binding that bind.go uses. Both back ends offer the same ones.
type (
	apiInstance                  = vulkan.Instance
	apiPhysicalDevice            = vulkan.PhysicalDevice
	apiDevice                    = vulkan.Device
	apiQueue                     = vulkan.Queue
	apiBuffer                    = vulkan.Buffer
	apiDeviceMemory              = vulkan.DeviceMemory
	apiShaderModule              = vulkan.ShaderModule
	apiDescriptorSetLayout       = vulkan.DescriptorSetLayout
	apiPipelineLayout            = vulkan.PipelineLayout
	apiPipeline                  = vulkan.Pipeline
	apiPipelineCache             = vulkan.PipelineCache
	apiDescriptorPool            = vulkan.DescriptorPool
	apiDescriptorSet             = vulkan.DescriptorSet
	apiCommandPool               = vulkan.CommandPool
	apiCommandBuffer             = vulkan.CommandBuffer
	apiQueryPool                 = vulkan.QueryPool
	apiSemaphore                 = vulkan.Semaphore
	apiDeviceSize                = vulkan.DeviceSize
	apiPhysicalDeviceProperties  = vulkan.PhysicalDeviceProperties
	apiBufferCreateInfo          = vulkan.BufferCreateInfo
	apiMemoryRequirements        = vulkan.MemoryRequirements
	apiMemoryAllocateInfo        = vulkan.MemoryAllocateInfo
	apiShaderModuleCreateInfo    = vulkan.ShaderModuleCreateInfo
	apiDescriptorSetAllocateInfo = vulkan.DescriptorSetAllocateInfo
	apiCommandPoolCreateInfo     = vulkan.CommandPoolCreateInfo
	apiCommandBufferAllocateInfo = vulkan.CommandBufferAllocateInfo
	apiCommandBufferBeginInfo    = vulkan.CommandBufferBeginInfo
	apiQueryPoolCreateInfo       = vulkan.QueryPoolCreateInfo
	apiPipelineCacheCreateInfo   = vulkan.PipelineCacheCreateInfo
	apiBufferUsageFlags          = vulkan.BufferUsageFlags
	apiCommandPoolCreateFlags    = vulkan.CommandPoolCreateFlags
	apiShaderStageFlags          = vulkan.ShaderStageFlags
)

const (
	apiStructureTypeBufferCreateInfo          = vulkan.StructureTypeBufferCreateInfo
	apiStructureTypeMemoryAllocateInfo        = vulkan.StructureTypeMemoryAllocateInfo
	apiStructureTypeShaderModuleCreateInfo    = vulkan.StructureTypeShaderModuleCreateInfo
	apiStructureTypeDescriptorSetAllocateInfo = vulkan.StructureTypeDescriptorSetAllocateInfo
	apiStructureTypeCommandPoolCreateInfo     = vulkan.StructureTypeCommandPoolCreateInfo
	apiStructureTypeCommandBufferAllocateInfo = vulkan.StructureTypeCommandBufferAllocateInfo
	apiStructureTypeCommandBufferBeginInfo    = vulkan.StructureTypeCommandBufferBeginInfo
	apiStructureTypeQueryPoolCreateInfo       = vulkan.StructureTypeQueryPoolCreateInfo
	apiStructureTypePipelineCacheCreateInfo   = vulkan.StructureTypePipelineCacheCreateInfo
	apiBufferUsageStorageBufferBit            = vulkan.BufferUsageStorageBufferBit
	apiBufferUsageTransferSrcBit              = vulkan.BufferUsageTransferSrcBit
	apiBufferUsageTransferDstBit              = vulkan.BufferUsageTransferDstBit
	apiBufferUsageIndirectBufferBit           = vulkan.BufferUsageIndirectBufferBit
	apiCommandPoolCreateResetCommandBufferBit = vulkan.CommandPoolCreateResetCommandBufferBit
	apiCommandBufferLevelPrimary              = vulkan.CommandBufferLevelPrimary
	apiQueryTypeTimestamp                     = vulkan.QueryTypeTimestamp
	apiShaderStageComputeBit                  = vulkan.ShaderStageComputeBit
	apiPipelineBindPointCompute               = vulkan.PipelineBindPointCompute
	apiPipelineStageBottomOfPipeBit           = vulkan.PipelineStageBottomOfPipeBit
)

var (
	callSetGetInstanceProcAddr      = vulkan.SetGetInstanceProcAddr
	callInit                        = vulkan.Init
	callInitInstance                = vulkan.InitInstance
	callEnumeratePhysicalDevices    = vulkan.EnumeratePhysicalDevices
	callGetPhysicalDeviceProperties = vulkan.GetPhysicalDeviceProperties
	callGetDeviceQueue              = vulkan.GetDeviceQueue
	callDeviceWaitIdle              = vulkan.DeviceWaitIdle
	callCreateBuffer                = vulkan.CreateBuffer
	callDestroyBuffer               = vulkan.DestroyBuffer
	callGetBufferMemoryRequirements = vulkan.GetBufferMemoryRequirements
	callAllocateMemory              = vulkan.AllocateMemory
	callFreeMemory                  = vulkan.FreeMemory
	callBindBufferMemory            = vulkan.BindBufferMemory
	callMapMemory                   = vulkan.MapMemory
	callCreateShaderModule          = vulkan.CreateShaderModule
	callDestroyShaderModule         = vulkan.DestroyShaderModule
	callDestroyDescriptorSetLayout  = vulkan.DestroyDescriptorSetLayout
	callDestroyPipelineLayout       = vulkan.DestroyPipelineLayout
	callDestroyPipeline             = vulkan.DestroyPipeline
	callDestroyDescriptorPool       = vulkan.DestroyDescriptorPool
	callAllocateDescriptorSets      = vulkan.AllocateDescriptorSets
	callCreateCommandPool           = vulkan.CreateCommandPool
	callDestroyCommandPool          = vulkan.DestroyCommandPool
	callAllocateCommandBuffers      = vulkan.AllocateCommandBuffers
	callBeginCommandBuffer          = vulkan.BeginCommandBuffer
	callEndCommandBuffer            = vulkan.EndCommandBuffer
	callCmdBindPipeline             = vulkan.CmdBindPipeline
	callCmdBindDescriptorSets       = vulkan.CmdBindDescriptorSets
	callCmdPushConstants            = vulkan.CmdPushConstants
	callCmdDispatch                 = vulkan.CmdDispatch
	callCmdDispatchIndirect         = vulkan.CmdDispatchIndirect
	callCmdFillBuffer               = vulkan.CmdFillBuffer
	callCmdResetQueryPool           = vulkan.CmdResetQueryPool
	callCmdWriteTimestamp           = vulkan.CmdWriteTimestamp
	callCreateQueryPool             = vulkan.CreateQueryPool
	callDestroyQueryPool            = vulkan.DestroyQueryPool
	callCreatePipelineCache         = vulkan.CreatePipelineCache
	callGetPipelineCacheData        = vulkan.GetPipelineCacheData
	callDestroyPipelineCache        = vulkan.DestroyPipelineCache
	callDestroySemaphore            = vulkan.DestroySemaphore
)
