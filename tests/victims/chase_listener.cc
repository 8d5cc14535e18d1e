/*
 * A bus that tells its listeners. A widget deletes its listener and forgets to take it off the bus;
 * the next event calls a virtual function of what was deleted.
 */
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "chase_truth.h"

#define NOT_INLINE __attribute__((noinline))

struct Listener {
	virtual ~Listener() = default;
	virtual long on(long event) = 0;
};

struct Sum : Listener {
	long sum = 0;

	long on(long event) override
	{
		return sum += event;
	}
};

struct Bus {
	std::vector<Listener *> listeners;

	NOT_INLINE void add(Listener *listener)
	{
		listeners.push_back(listener);
	}

	NOT_INLINE long tell(long event)
	{
		long total = 0;

		for (Listener *listener : listeners)
			total += listener->on(event);
		return total;
	}
};

struct Widget {
	Sum *sum;

	NOT_INLINE explicit Widget(Bus &bus) : sum(new Sum)
	{
		bus.add(sum);
	}

	NOT_INLINE ~Widget()
	{
		delete sum;
	}
};

NOT_INLINE static void labels_make()
{
	for (int i = 0; i < 4; i++) {
		long *label = static_cast<long *>(malloc(16));

		label[0] = 0x3132333435363738;
		label[1] = i;
	}
}

int main()
{
	Bus bus;
	Widget *widgets[6];

	tell_truth("class use-after-free\n"
		   "class dangling-holder\n"
		   "holder chase_listener.cc:Bus::add\n"
		   "freer chase_listener.cc:Widget::~Widget\n"
		   "allocator chase_listener.cc:Widget::Widget\n"
		   "reader chase_listener.cc:Bus::tell\n");
	for (Widget *&widget : widgets)
		widget = new Widget(bus);
	printf("%ld\n", bus.tell(1));
	delete widgets[3];
	labels_make();
	printf("%ld\n", bus.tell(2));
	return 0;
}
