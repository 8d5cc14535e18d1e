#include "run/slot.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/fd.h"
#include "base/now.h"
#include "model/known_secrets.h"
#include "read/logs.h"
#include "run/chaos_draw.h"
#include "run/dropped.h"
#include "run/emitted_names.h"
#include "run/observe.h"
#include "run/outcome.h"
#include "run/output.h"
#include "run/process_family.h"
#include "run/tmp_dirs.h"
#include "run/tracer.h"
#include "run/trial_dir.h"
#include "wire/tracer_talk.h"

#define NS_PER_S 1000000000u
#define NS_PER_MS 1000000u

/* How long the remains of a trial may take to die after SIGKILL. Longer means
 * stuck in the kernel, and waiting would not help. */
#define KILL_PATIENCE_NS (10ull * NS_PER_S)

struct slot {
	int socket;
	int signals; /* signalfd for SIGCHLD */
	int trials;  /* the case's trials/ */
	struct room room;
	bool core_before; /* a file `core` was in the program's directory before the first trial */
	const struct trial_settings *settings;
	struct output output;

	/* The running trial. */
	struct trial_end *end;
	pid_t main;	      /* the command itself; 0 once it has been reaped */
	pid_t tracer;	      /* 0: none, or it has been reaped */
	int out, err;	      /* our ends of its output; -1 once closed */
	int marks;	      /* our end of the fifo for marks; -1 when there is none */
	uint64_t deadline_ns; /* for what comes next: the timeout, the lingering */
	bool ending;	      /* we are killing it: deaths are our own doing */
	bool childless;	      /* nothing of it is left */
	bool orphaned;	      /* the socket has closed: redhand has gone */
};

static uint64_t timeval_ns(struct timeval tv)
{
	return (uint64_t)tv.tv_sec * NS_PER_S + (uint64_t)tv.tv_usec * 1000;
}

/* Signals whose default action is a core dump: a process that nobody waited for and that died
 * from one of these has crashed. SIGTERM and the like are how servers are stopped. */
static bool is_crash(int signal)
{
	static const int crashes[] = { SIGQUIT, SIGILL,	 SIGTRAP, SIGABRT, SIGBUS,
				       SIGFPE,	SIGSEGV, SIGXCPU, SIGXFSZ, SIGSYS };

	for (size_t i = 0; i < ARRAY_SIZE(crashes); i++)
		if (crashes[i] == signal)
			return true;
	return false;
}

static void reap_one(struct slot *s, pid_t pid, int status, const struct rusage *ru)
{
	struct trial_end *end = s->end;

	if (pid == s->tracer) {
		s->tracer = 0;
		return;
	}
	end->user_ns += timeval_ns(ru->ru_utime);
	end->system_ns += timeval_ns(ru->ru_stime);
	if ((uint64_t)ru->ru_maxrss > end->peak_kib)
		end->peak_kib = (uint64_t)ru->ru_maxrss;
	if (pid == s->main) {
		s->main = 0;
		s->deadline_ns = clock_ns() + s->settings->linger_ns;
		if (s->tracer > 0)
			tracer_finish(s->tracer);
		if (s->ending)
			return;
		end->exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
		end->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	} else if (WIFSIGNALED(status) && is_crash(WTERMSIG(status)) && !s->ending &&
		   end->stray.signal == 0) {
		end->stray = (struct process_death){ .pid = pid, .signal = WTERMSIG(status) };
	}
}

static void reap(struct slot *s)
{
	struct rusage ru;
	int status;
	pid_t pid;

	while ((pid = wait4(-1, &status, WNOHANG, &ru)) > 0)
		reap_one(s, pid, status, &ru);
	s->childless = pid < 0 && errno == ECHILD;
}

/* More than a pipe can hold (pipe(7): 1 MiB unless root raised it): what is left when nobody
 * writes any more. */
#define DRAIN_READS 256

/* Reads what is there, at most `reads` buffers of it: a command that writes faster than its lines
 * can be looked at must not keep us from the clock. Closes the stream at its end. */
static void drain(struct capture *capture, int *fd, unsigned int reads)
{
	char buffer[65536];

	while (*fd >= 0 && reads > 0) {
		ssize_t n = read(*fd, buffer, sizeof(buffer));

		if (n > 0) {
			capture_add(capture, buffer, (size_t)n);
			reads--;
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		/* End of file; a terminal whose other side has closed says EIO. */
		fd_close(*fd);
		*fd = -1;
	}
}

/* Ends everything that the trial started, whatever group or session it is in. */
static void end_family(struct slot *s)
{
	uint64_t give_up = clock_ns() + KILL_PATIENCE_NS;
	struct timespec pause = { .tv_nsec = NS_PER_MS };

	s->ending = true;
	for (reap(s); !s->childless && clock_ns() < give_up; reap(s)) {
		(void)family_signal(SIGKILL);
		(void)nanosleep(&pause, NULL);
	}
}

static int poll_timeout_ms(const struct slot *s)
{
	uint64_t now = clock_ns();

	if (s->deadline_ns == 0)
		return -1;
	if (s->deadline_ns <= now)
		return 0;
	return (int)((s->deadline_ns - now + NS_PER_MS - 1) / NS_PER_MS);
}

/* Nothing is waited for any longer. */
static bool is_over(struct slot *s)
{
	if (s->output.wanted.over && s->main > 0) {
		reap(s); /* it may just have ended */
		s->end->stopped = s->main > 0;
		if (s->end->stopped)
			return true;
	}
	if (s->deadline_ns == 0 || clock_ns() < s->deadline_ns)
		return false;
	reap(s); /* it may just have ended */
	s->end->timed_out = s->main > 0;
	return s->end->timed_out || !s->childless;
}

/* Waits for the command to end, then for what it left behind, at most to the deadline. */
static void attend(struct slot *s)
{
	while (!s->childless || s->main > 0) {
		struct pollfd fds[] = {
			{ .fd = s->signals, .events = POLLIN },
			{ .fd = s->out, .events = POLLIN },
			{ .fd = s->err, .events = POLLIN },
			{ .fd = s->socket, .events = POLLRDHUP },
			{ .fd = s->marks, .events = POLLIN },
		};
		struct signalfd_siginfo info;

		if (poll(fds, ARRAY_SIZE(fds), poll_timeout_ms(s)) < 0 && errno != EINTR)
			break;
		if (fds[1].revents)
			drain(&s->output.out, &s->out, 1);
		if (fds[2].revents)
			drain(&s->output.err, &s->err, 1);
		if (fds[4].revents)
			drain(&s->output.marks, &s->marks, 1);
		if (fds[0].revents) {
			(void)!read(s->signals, &info, sizeof(info));
			reap(s);
		}
		if (fds[3].revents & (POLLRDHUP | POLLHUP | POLLERR)) {
			s->orphaned = true;
			break;
		}
		if (is_over(s))
			break;
	}
	if (!s->childless) {
		s->end->leftovers =
			s->main > 0 ? 0 : (unsigned int)family_signal(0) - (s->tracer > 0);
		end_family(s);
	}
}

/* The descriptors of a trial's output, both ends. */
struct channels {
	int out, err;		  /* ours */
	int child_out, child_err; /* the command's; may be the same */
};

static void channels_closep(struct channels *c)
{
	fd_close(c->out);
	fd_close(c->err);
	fd_close(c->child_out);
	if (c->child_err != c->child_out)
		fd_close(c->child_err);
}

static int open_terminal(struct channels *c, struct err *err)
{
	struct winsize size = { .ws_row = 24, .ws_col = 80 };
	struct termios raw;

	if (openpty(&c->out, &c->child_out, NULL, NULL, &size) < 0)
		return err_set_errno(err, -errno, "cannot make a terminal for the command");
	c->child_err = c->child_out;
	/* Lines as the program wrote them, without a carriage return added. */
	if (tcgetattr(c->child_out, &raw) == 0) {
		cfmakeraw(&raw);
		(void)tcsetattr(c->child_out, TCSANOW, &raw);
	}
	(void)fcntl(c->out, F_SETFD, FD_CLOEXEC);
	(void)fcntl(c->child_out, F_SETFD, FD_CLOEXEC);
	(void)fcntl(c->out, F_SETFL, O_NONBLOCK);
	return 0;
}

static int open_pipes(struct channels *c, struct err *err)
{
	int out[2], error[2];
	int fault = fault_hits("pipe");

	if (fault > 0 || pipe2(out, O_CLOEXEC) < 0)
		return err_set_errno(err, fault > 0 ? -fault : -errno,
				     "cannot make a pipe for the command's output");
	c->out = out[0];
	c->child_out = out[1];
	if (pipe2(error, O_CLOEXEC) < 0)
		return err_set_errno(err, -errno, "cannot make a pipe for the command's output");
	c->err = error[0];
	c->child_err = error[1];
	(void)fcntl(c->out, F_SETFL, O_NONBLOCK);
	(void)fcntl(c->err, F_SETFL, O_NONBLOCK);
	return 0;
}

static void build_env(const struct slot *s, const struct trial_job *job, struct strv *ret)
{
	strv_copy(ret, environ);
	if (s->room.tmp >= 0) {
		AUTO(mem_freep)
		char *tmp = mem_printf("%s/%llu", s->settings->trials.tmp_dirs,
				       (unsigned long long)job->number.value);

		strv_setenv(ret, "TMPDIR", tmp);
	}
	for (size_t i = 0; i < job->env.count; i++) {
		AUTO(mem_freep) char *name = mem_strdup(job->env.items[i]);
		char *equals = strchr(name, '=');

		if (equals)
			*equals = '\0';
		strv_setenv(ret, name, equals ? equals + 1 : NULL);
	}
	chaos_environment(&job->chaos, ret);
	observe_environment(s->settings, job, ret);
}

static int spawn(struct slot *s, const struct trial_job *job, const struct channels *c,
		 struct err *err)
{
	AUTO(strv_deinit) struct strv env = { 0 }, argv = { 0 };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	const char *cwd = job->cwd ? job->cwd : s->settings->cwd;
	int code = fault_hits("spawn");
	cpu_set_t cores;

	build_env(s, job, &env);
	observe_command(job, &argv);
	/* A worker's slot gets to know them here. */
	secret_learn(job->argv.items);
	if (job->env.count > 0)
		secret_learn(job->env.items);
	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawnattr_init(&attributes);
	(void)posix_spawn_file_actions_addopen(&actions, 0, s->settings->stdin_path, O_RDONLY, 0);
	(void)posix_spawn_file_actions_adddup2(&actions, c->child_out, 1);
	(void)posix_spawn_file_actions_adddup2(&actions, c->child_err, 2);
	if (cwd)
		(void)posix_spawn_file_actions_addchdir_np(&actions, cwd);
	/* A session of its own: Ctrl-C is for redhand, which ends the trials itself. */
	(void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
	(void)posix_spawnattr_setsigmask(&attributes, &s->settings->signal_mask);
	chaos_pin(&job->chaos, &cores);
	if (code == 0)
		code = posix_spawnp(&s->main, argv.items[0], &actions, &attributes, argv.items,
				    env.items);
	chaos_unpin(&job->chaos, &cores);
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)posix_spawnattr_destroy(&attributes);
	if (code == 0)
		return 0;
	s->main = 0;
	/* The same number comes back whatever was not there. */
	if (cwd && access(cwd, X_OK) < 0)
		return err_set_errno(err, -errno, "cannot run the program in '%s'", cwd);
	if (access(s->settings->stdin_path, R_OK) < 0)
		return err_set_errno(err, -errno, "cannot open '%s' for the program",
				     s->settings->stdin_path);
	return err_set_errno(err, -code, "cannot run '%s'", argv.items[0]);
}

static int save_output(struct slot *s, const char *name, bool keep, struct err *err)
{
	AUTO(fd_closep) int dir = -1;
	int r;

	/* The target may have removed it. */
	(void)mkdirat(s->trials, name, 0700);
	dir = openat(s->trials, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return err_set_errno(err, -errno, "cannot open trials/%s", name);
	r = capture_save(&s->output.out, dir, "stdout", err);
	if (r == 0 && !(s->settings->flags & TRIAL_PTY))
		r = capture_save(&s->output.err, dir, "stderr", err);
	(void)unlinkat(dir, TRIAL_MARKS, 0);
	(void)unlinkat(dir, WIRE_TRACER_NAME, 0);
	if (r == 0)
		r = room_leave(&s->room, name, keep, err);
	return r;
}

/* Files that the command will ask for, and the fifo for its marks. We hold both ends of that: there
 * is no end of file to wait for, and whoever writes to it never waits for a reader. */
static int furnish(struct slot *s, const char *name, const struct trial_job *job, struct err *err)
{
	AUTO(fd_closep) int dir = -1;
	int r = 0;

	if (job->files.count == 0 && !job->wanted.marks)
		return 0;
	dir = openat(s->trials, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return err_set_errno(err, -errno, "cannot open trials/%s", name);
	VEC_FOREACH (&job->files, file)
		if (r == 0)
			r = file_write_at(dir, file->name, file->content, strlen(file->content),
					  err);
	if (r < 0 || !job->wanted.marks)
		return r;
	if (mkfifoat(dir, TRIAL_MARKS, 0600) == 0)
		s->marks = openat(dir, TRIAL_MARKS, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	if (s->marks < 0)
		return err_set_errno(err, -errno, "cannot make trials/%s/" TRIAL_MARKS, name);
	return 0;
}

/* Before the plan, which names it. */
static int start_tracer(struct slot *s, const char *name, const struct trial_job *job,
			struct err *err)
{
	AUTO(fd_closep) int dir = -1;

	s->tracer = 0;
	if (!(s->settings->flags & TRIAL_TRACED) || job->pages ||
	    !observe_watches(s->settings, job))
		return 0;
	dir = openat(s->trials, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return err_set_errno(err, -errno, "cannot open trials/%s", name);
	return tracer_start(dir, &s->tracer, err);
}

/* A trial that did not start has nothing to be traced. */
static void stop_tracer(struct slot *s)
{
	if (s->tracer <= 0)
		return;
	(void)kill(s->tracer, SIGKILL);
	(void)waitpid(s->tracer, NULL, 0);
	s->tracer = 0;
}

/* Crashes that only an observer saw, and files made shorter: both may concern trials that pass. */
static void look_at_logs(const struct slot *s, const char *name, struct trial_end *end)
{
	struct event_glance glance;
	int died = end->signal != 0 ? end->signal : end->stray.signal;

	event_logs_glance(s->trials, name, &glance);
	/* A handler that was given the signal, and the death of it: nobody saw that one come. */
	if (glance.signal == 0 && died != 0 && glance.handed_signal == died) {
		glance.signal = glance.handed_signal;
		glance.pid = glance.handed_pid;
	}
	/* The kernel kills for a system call that it was to tell and could not (watched pages). The
	 * target's own SIGSYS has a record, or came from a sandbox, before which the agent left. */
	end->by_observer = died == SIGSYS && glance.signal == 0 && glance.told;
	/* A runtime that ends the process by itself for what happened in C code (Go). */
	if (glance.signal == 0 && died == 0 && end->exit_status > 0 && !end->timed_out &&
	    glance.called_signal != 0) {
		glance.signal = glance.called_signal;
		glance.pid = glance.called_pid;
		end->hid_its_own = glance.called_parent == getpid();
	}
	end->observed = (struct process_death){ .pid = glance.pid, .signal = glance.signal };
	end->cuts = glance.cuts;
}

/* What must be there before the command starts. */
static int prepare(struct slot *s, const char *name, const struct trial_job *job,
		   struct channels *ret, struct err *err)
{
	int r = start_tracer(s, name, job, err);

	if (r == 0)
		r = observe_write_plan(s->settings, job, s->trials, name, s->tracer, err);
	if (r == 0)
		r = furnish(s, name, job, err);
	if (r == 0)
		r = s->settings->flags & TRIAL_PTY ? open_terminal(ret, err) : open_pipes(ret, err);
	return r;
}

static void begin_end(struct slot *s, const struct trial_job *job, struct trial_end *end)
{
	bool milestones = job->growth || job->observer >= OBSERVE_HEAP;

	end->started_ms = clock_epoch_ms();
	end->exit_status = -1;
	output_begin(&s->output, end,
		     (job->learn ? OUTPUT_PAIRS : 0) | (milestones ? OUTPUT_MILESTONES : 0));
	output_want(&s->output, &job->wanted);
	s->end = end;
	s->ending = s->childless = false;
}

/* Our copies of the command's ends must go, or end of file never comes. */
static void take_ends(struct slot *s, struct channels *c)
{
	fd_close(c->child_out);
	if (c->child_err != c->child_out)
		fd_close(c->child_err);
	c->child_out = c->child_err = -1;
	s->out = c->out;
	s->err = c->err;
	c->out = c->err = -1;
}

static void finish_output(struct slot *s)
{
	drain(&s->output.out, &s->out, DRAIN_READS);
	drain(&s->output.err, &s->err, DRAIN_READS);
	drain(&s->output.marks, &s->marks, DRAIN_READS);
	fd_close(s->out);
	fd_close(s->err);
	output_finish(&s->output);
}

/* What may still have to be read stays; redhand drops it later. */
static int keep_or_drop(struct slot *s, const char *name, const struct trial_job *job,
			struct trial_result *result, struct err *err)
{
	bool failed = judge_failed(s->settings, &result->end);
	bool kept = s->settings->keep == KEEP_ALL || (failed && s->settings->keep == KEEP_FAILED);

	result->left = kept || result->end.cuts || job->growth || job->examined ||
		       job->observer >= OBSERVE_HEAP || (failed && job->observer != OBSERVE_NONE);
	return result->left ? save_output(s, name, kept, err) : room_drop(&s->room, name, err);
}

static int run_trial(struct slot *s, const struct trial_job *job, struct trial_result *result,
		     struct err *err)
{
	AUTO(channels_closep) struct channels c = { -1, -1, -1, -1 };
	struct trial_end *end = &result->end;
	struct dropped dropped = { .dir = -1 };
	pid_t main;
	char name[24];
	uint64_t start = 0;
	int r;

	(void)snprintf(name, sizeof(name), "%llu", (unsigned long long)job->number.value);
	/* The agent opens what another user needs. Without it, that must be open from the start. */
	s->room.shared = job->observer < OBSERVE_CRASH && geteuid() == 0;
	r = room_open(&s->room, name, err);
	if (r < 0)
		return r;
	r = prepare(s, name, job, &c, err);
	if (r == 0) {
		begin_end(s, job, end);
		dropped_begin(&dropped, job->cwd ? job->cwd : s->settings->cwd);
		/* One that is there now may be of the trial beside this one. */
		if (!job->cwd)
			dropped.core_before = s->core_before;
		start = clock_ns();
		s->deadline_ns = s->settings->timeout_ns > 0 ? start + s->settings->timeout_ns : 0;
		r = spawn(s, job, &c, err);
	}
	if (r < 0) {
		fd_close(dropped.dir);
		stop_tracer(s);
		(void)room_drop(&s->room, name, NULL);
		return r;
	}
	main = s->main;
	take_ends(s, &c);
	attend(s);
	end->wall_ns = clock_ns() - start;
	finish_output(s);
	if (s->orphaned)
		return 0;
	room_reclaim(&s->room, name);
	if (job->observer >= OBSERVE_CRASH)
		look_at_logs(s, name, end);
	emitted_names_take(s->trials, name, job->cwd ? job->cwd : s->settings->cwd,
			   end->started_ms);
	dropped_end(&dropped, end, main, s->trials, name);
	return keep_or_drop(s, name, job, result, err);
}

static int serve_one(struct slot *s, const struct strbuf *message)
{
	AUTO(trial_job_deinit) struct trial_job job = { 0 };
	AUTO(trial_result_deinit) struct trial_result result = { 0 };
	AUTO(strbuf_deinit) struct strbuf answer = { 0 };
	struct err err = { 0 };
	int r;

	if (!trial_job_unpack(message->data, message->len, &job))
		return -EBADMSG;
	result.number = job.number;
	result.slot = job.slot;
	r = run_trial(s, &job, &result, &err);
	fd_close(s->marks);
	s->marks = -1;
	if (s->orphaned)
		return -EPIPE;
	if (r < 0) {
		result.trouble = err.remedy[0] != '\0'
					 ? mem_printf("%s (%s)", err.message, err.remedy)
					 : mem_strdup(err.message);
		result.trouble_code = r;
	}
	trial_result_pack(&result, &answer);
	return message_send(s->socket, &answer);
}

/* The case's trials/, and nothing that was put in its place since. */
static int open_trials(const struct trial_settings *settings)
{
	int fd = open(settings->trials.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;

	if (fd >= 0 && settings->trials.inode != 0 &&
	    (fstat(fd, &st) < 0 || st.st_ino != settings->trials.inode ||
	     st.st_dev != settings->trials.device)) {
		fd_close(fd);
		return -1;
	}
	return fd;
}

void slot_main(int socket, unsigned int slot, const struct trial_settings *settings)
{
	AUTO(strbuf_deinit) struct strbuf message = { 0 };
	struct slot s = { .socket = socket, .settings = settings, .marks = -1 };
	struct dropped dropped;
	sigset_t all, child;
	char name[16];

	(void)snprintf(name, sizeof(name), "redhand-slot%u", slot);
	(void)prctl(PR_SET_NAME, name);
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	(void)setsid();
	/* Nothing but the socket ends a slot: a Ctrl-C must not reach it before it has cleaned up.
	 */
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	s.signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	s.trials = open_trials(settings);
	room_init(&s.room, s.trials, slot, tmp_dirs_open(settings));
	output_init(&s.output, settings);
	dropped_begin(&dropped, settings->cwd);
	fd_close(dropped.dir);
	s.core_before = dropped.core_before;
	while (s.signals >= 0 && s.trials >= 0 && message_receive(socket, &message) > 0)
		if (serve_one(&s, &message) < 0)
			break;
	room_end(&s.room);
	_exit(0);
}
